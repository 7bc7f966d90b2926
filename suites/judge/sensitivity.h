// SPDX-License-Identifier: BSD-3-Clause
// Would a kernel's error of one code be noticed?
#pragma once

#include "kernels/abi/qcts_kernel.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

// Returns the share of sampled outputs of `linear` for which changing one code by one step would have been
// noticed. If no sampled output notices, all outputs are tried: 0 means that none does.
double sensitivity_of_linear(const TestVector& test_vector, const Expectation& expectation,
                             const qcts_numerics& numerics);

}  // namespace qcts
