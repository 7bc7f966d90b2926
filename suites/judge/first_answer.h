// SPDX-License-Identifier: BSD-3-Clause
// The first questions to a kernel: whether it serves a problem, and its answer. It may decline the problem,
// and refuse values that no recipe writes.
#pragma once

#include <optional>

#include "reports/verdict.h"
#include "suites/inputs/input_kind.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// Returns true unless supports() accepted the problem. The verdict is then "not_supported" with the kernel's
// reason, or a fail: a valid problem is not invalid, and a kernel that cannot say whether it serves one has
// failed.
bool is_declined(const Support& support, Verdict& verdict);

// Returns the kernel's answer with outputs poisoned with NaN. Returns nullopt if run() or prepare() returned
// QCTS_FAILED and the input is not reachable; the verdict is then "not_supported", with the reason.
// Throws ProviderFault as KernelRun::run does, for QCTS_FAILED on a reachable input too.
std::optional<KernelAnswer> first_answer(KernelRun& run, InputKind kind, Verdict& verdict);

}  // namespace qcts
