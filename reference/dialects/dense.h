// What a tensor means as plain numbers by its producer's own dequantize(), for tensors that no scheme of the
// list has: the first generation of torchao's subclasses, and subclasses around a plain weight.
#pragma once

#include <optional>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Row-major, of the tensor's own shape and dtype. nullopt where nothing here knows the class, its layout, or
// the values in it (a zero point that is no integer). Sources: affine.cc.
std::optional<Tensor> dense_by_dialect(const NamedTensor& tensor);

}  // namespace qcts
