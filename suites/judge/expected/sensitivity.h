// SPDX-License-Identifier: BSD-3-Clause
// Checks that a slightly wrong answer to a case would not have passed. If it would have, a pass is weak
// evidence.
#pragma once

#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

// Returns the share of sampled outputs for which changing the lowest bit of one code would have been noticed.
// If no sampled output shows the change, all outputs are tried, or a thousand of more than 2^18. 0 means that
// none shows it.
double sensitivity_of_linear(const TestVector& test_vector, const Expectation& expectation,
                             const LinearStages& stages);

// Returns true if all answers are NaN, so that no changed code is visible, but an answer without the products
// of weights of zero would have been noticed, because these are NaN where x is not finite.
bool notices_skipped_zeros(const TestVector& test_vector, const Expectation& expectation);

// Keeps two nonzero elements in each row of x, different ones from row to row, and drops the bias. Divides a
// float16 x so that their products with 8-bit codes are finite in float16.
void zero_all_but_two_per_row(KernelInput& input);

// Returns true if a changed element of the expected answer would have been noticed.
// Applies to ops that are judged bit for bit.
bool bitwise_case_is_sensitive(const TestVector& test_vector);

}  // namespace qcts
