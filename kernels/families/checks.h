// SPDX-License-Identifier: BSD-3-Clause
// Checks that every variant of an (op, family) makes of a problem.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Checks everything that the variants of one (op, scheme) agree on: processor features, device, dimensions,
// group, dtypes, layout, activation policy and, if planes are given, their names, dtypes, shapes and
// row-major strides. Returns QCTS_OK, or QCTS_UNSUPPORTED with a reason.
qcts_status check_problem(const qcts_kernel& kernel, const qcts_problem* problem, char* why, size_t why_size);

// Checks the same, and that nothing the op reads or writes is NULL. run() calls it first. Returns QCTS_OK or
// QCTS_INVALID.
qcts_status check_run(const qcts_kernel& kernel, const qcts_problem* problem);

// For prepare(): the same as check_problem, and planes must be given. Returns QCTS_OK or QCTS_INVALID.
qcts_status check_prepare(const qcts_kernel& kernel, const qcts_problem* problem);

// Checks planes in which a checkpoint gives a scale of x, if they are given, against the policy. Returns
// QCTS_OK, or QCTS_UNSUPPORTED with a reason.
qcts_status check_given_scale(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                              size_t why_size);
// True if those planes are given with data and match the policy, or if the policy has none.
bool gives_scale(const qcts_kernel& kernel, const qcts_problem& problem);

// For quantize_activation: checks processor features, policy, device, dtype and rows of x, whole blocks, and
// a given scale. Returns QCTS_OK, or QCTS_UNSUPPORTED with a reason.
qcts_status check_activation(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                             size_t why_size);

}  // namespace qcts
