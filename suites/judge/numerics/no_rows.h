// SPDX-License-Identifier: BSD-3-Clause
// Judges linear and quantize_activation without rows of x (m = 0).
#pragma once

#include <cstdint>

#include "reports/verdict.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// There is no answer to compare. The kernel must return QCTS_OK, whether x, y and the planes of rows are NULL
// or not, and must not write through them. It must ask for the same prepared weight as for m = 1, and for no
// larger workspace. The verdict passes only if a byte written there would have been noticed.
void judge_without_rows(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads,
                        Verdict& verdict);

}  // namespace qcts
