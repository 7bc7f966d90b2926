// SPDX-License-Identifier: BSD-3-Clause
// The first call of a kernel, which may refuse values that no recipe writes.
#pragma once

#include <optional>

#include "reports/verdict.h"
#include "suites/inputs/input_kind.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// Returns the kernel's answer with outputs poisoned with NaN. Returns nullopt if run() or prepare() returned
// QCTS_FAILED and the input is not reachable; the verdict is then "not_supported", with the reason.
// Throws ProviderFault as KernelRun::run does, for QCTS_FAILED on a reachable input too.
std::optional<KernelAnswer> first_answer(KernelRun& run, InputKind kind, Verdict& verdict);

}  // namespace qcts
