// SPDX-License-Identifier: BSD-3-Clause
// Decodes the elements of the numpy arrays in which torch before 2.2 saved tensors of XLA devices.
// pickle/numpy_arrays.h describes the form.
// The state of an array is defined in numpy/_core/src/multiarray/methods.c, array_reduce.
// The state of a dtype is defined in descriptor.c there, arraydescr_reduce.
#pragma once

#include "reference/formats/torch/object.h"

namespace qcts {

// Fills object.arrays with the elements of torch.from_numpy(array).to(dtype).
// Returns the number of their bytes. Throws Refused for these faults:
//   PickleType     another form
//   Dtype          elements that torch does not know, or a conversion other than float32 to bfloat16
//   TensorBounds   bytes that do not match the shape
//   LimitExceeded  more bytes than the pickle's
uint64_t decode_arrays(TorchObject& object, uint64_t pickle_bytes, const Limits& limits);

// Returns the elements of a call that holds a numpy array, or nullptr for any other node.
const Tensor* array_of(const TorchObject& object, const pickle::Ref& call);

}  // namespace qcts
