// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scalar/int8_linear.h"
#include "kernels/scalar/weights.h"

using namespace qcts;

const qcts_kernel qcts_kernel_linear_int8_row_scalar =
    scalar::linear_of<qcts_kernel_linear_int8_row_scalar, scalar::Int8Source<scalar::OfRow>>("int8_row");

const qcts_kernel qcts_kernel_linear_int8_tensor_scalar =
    scalar::linear_of<qcts_kernel_linear_int8_tensor_scalar, scalar::Int8Source<scalar::OfTensor>>(
        "int8_tensor");

// Codes of the reduced schemes, -64 .. 63, mean the same.
const qcts_kernel qcts_kernel_linear_int8_row_reduced_scalar =
    scalar::linear_of<qcts_kernel_linear_int8_row_reduced_scalar, scalar::Int8Source<scalar::OfRow>>(
        "int8_row_reduced");

const qcts_kernel qcts_kernel_linear_int8_tensor_reduced_scalar =
    scalar::linear_of<qcts_kernel_linear_int8_tensor_reduced_scalar, scalar::Int8Source<scalar::OfTensor>>(
        "int8_tensor_reduced");

const qcts_kernel qcts_kernel_linear_int8_group_scalar =
    scalar::linear_of<qcts_kernel_linear_int8_group_scalar, scalar::Int8Source<scalar::OfGroup>>(
        "int8_group");

const qcts_kernel qcts_kernel_linear_fp8_row_scalar =
    scalar::linear_of<qcts_kernel_linear_fp8_row_scalar, scalar::Fp8RowSource>("fp8_row");

const qcts_kernel qcts_kernel_linear_fp8_scalar =
    scalar::linear_of<qcts_kernel_linear_fp8_scalar, scalar::Fp8Source>("fp8");

// W8A8: x and the weight are int8.
const qcts_kernel qcts_kernel_linear_int8_row_dyn_scalar =
    scalar::int8_linear_of<qcts_kernel_linear_int8_row_dyn_scalar, scalar::Int8Rows<FullRange>>(kInt8RowX);

const qcts_kernel qcts_kernel_linear_int8_tensor_dyn_scalar =
    scalar::int8_linear_of<qcts_kernel_linear_int8_tensor_dyn_scalar, scalar::Int8Tensor<FullRange>>(
        kInt8TensorX);

const qcts_kernel qcts_kernel_linear_int8_row_reduced_dyn_scalar =
    scalar::int8_linear_of<qcts_kernel_linear_int8_row_reduced_dyn_scalar, scalar::Int8Rows<ReducedRange>>(
        kInt8RowReducedX);

const qcts_kernel qcts_kernel_linear_int8_tensor_reduced_dyn_scalar =
    scalar::int8_linear_of<qcts_kernel_linear_int8_tensor_reduced_dyn_scalar,
                           scalar::Int8Tensor<ReducedRange>>(kInt8TensorReducedX);
