// SPDX-License-Identifier: BSD-3-Clause
// Checks of a problem that all variants of an (op, family) share.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Checks everything that the variants of one (op, scheme) have in common:
// processor features, device, dimensions, group, dtypes, layout and activation policy.
// If planes are given, it also checks their names, dtypes, shapes and row-major strides.
// Returns QCTS_OK, or QCTS_UNSUPPORTED with a reason.
qcts_status check_problem(const qcts_kernel& kernel, const qcts_problem* problem, char* why, size_t why_size);

// Checks the same, and that every pointer that the op uses is set. run() calls it first. Without rows of x,
// x and y may be NULL (has_no_rows() in kernels/abi/problem.h), and run() returns QCTS_OK at once.
// Returns QCTS_OK or QCTS_INVALID.
qcts_status check_run(const qcts_kernel& kernel, const qcts_problem* problem);

// Does the same as check_problem for prepare(), and requires planes. Returns QCTS_OK or QCTS_INVALID.
qcts_status check_prepare(const qcts_kernel& kernel, const qcts_problem* problem);

// If the problem has planes in which a checkpoint stores a scale of x, checks them against the policy.
// Returns QCTS_OK, or QCTS_UNSUPPORTED with a reason.
qcts_status check_given_scale(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                              size_t why_size);
// True if those planes have data and match the policy, or if the policy needs none.
bool gives_scale(const qcts_kernel& kernel, const qcts_problem& problem);

// Checks a problem of quantize_activation: processor features, policy, device, dtype and rows of x,
// whole blocks, and a given scale. Returns QCTS_OK, or QCTS_UNSUPPORTED with a reason.
qcts_status check_activation(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                             size_t why_size);

}  // namespace qcts
