// SPDX-License-Identifier: BSD-3-Clause
// Problems drawn from a seed, so that no kernel can know the shapes that it is judged on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

inline constexpr int kDraws = 16;
inline constexpr int64_t kMaxDrawnProducts = int64_t{1} << 22;  // m * n * k

// Returns up to kDraws problems of (op, scheme, layout, policy): n and m log-uniform in 1 to 300, a third of
// them next to a multiple of 16 to 128, 1 to 48 groups of k with a tail where the scheme allows one, the
// dtype, 1 to 17 threads, and a bias or none. k is drawn first, then n, then m under kMaxDrawnProducts. n and
// k are rounded up to what the scheme and the layout accept. Problem 0 has as few rows of the weight as the
// scheme accepts, problem 1 one row of x; from problem kFirstMixedDraw on, x, y and bias of a linear each
// have their own type. Another `seed`, scheme, operation, layout or policy gives other problems.
std::vector<Synthetic> drawn_inputs(Op op, const Scheme& scheme, Layout layout, Policy activation,
                                    uint64_t seed);

// Returns "m 3, n 37, k 216, bfloat16, 5 threads, bias": what the id of a drawn case does not say.
std::string problem_text(const Synthetic& drawn, Op op);

}  // namespace qcts
