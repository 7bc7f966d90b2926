// SPDX-License-Identifier: BSD-3-Clause
// Checks that every variant of an (op, family) makes of a problem. They are ordinary functions, compiled once
// for the baseline processor.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Everything that the variants of one (op, scheme) agree on: processor features, device, dimensions, group,
// dtypes, layout, activation policy, and, where planes are given, their names, dtypes, shapes and row-major
// strides. QCTS_OK or QCTS_UNSUPPORTED with a reason.
qcts_status check_problem(const qcts_kernel& kernel, const qcts_problem* problem, char* why, size_t why_size);

// The same, plus that nothing the op reads or writes is NULL. Called first by run(): QCTS_OK or QCTS_INVALID.
qcts_status check_run(const qcts_kernel& kernel, const qcts_problem* problem);

// For prepare(): as check_problem, and the planes are there. QCTS_OK or QCTS_INVALID.
qcts_status check_prepare(const qcts_kernel& kernel, const qcts_problem* problem);

// That the planes in which a checkpoint gives a scale of x are as the policy has them, where planes are
// given. QCTS_OK or QCTS_UNSUPPORTED with a reason.
qcts_status check_given_scale(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                              size_t why_size);
// Are they there, as the policy has them, with data? Yes where it has none.
bool gives_scale(const qcts_kernel& kernel, const qcts_problem& problem);

// For quantize_activation: processor features, the policy, device, dtype and rows of x, whole blocks, a given
// scale. QCTS_OK or QCTS_UNSUPPORTED with a reason.
qcts_status check_activation(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                             size_t why_size);

}  // namespace qcts
