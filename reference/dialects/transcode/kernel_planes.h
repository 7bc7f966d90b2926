// SPDX-License-Identifier: BSD-3-Clause
// Puts weights of other libraries into the planes of a scheme, whose kernels then run them. GPTQ, AWQ,
// compressed-tensors, block float8, ModelOpt, gpt-oss and MLX pack the same numbers in other ways.
#pragma once

#include "reference/dialects/decoders/scheme_tensor.h"

namespace qcts {

// Returns planes in layout "plain" whose exact weights are those of the file: each code, zero point and scale
// is equal. A code of -0 that the library reads as +0 becomes +0. A stack of experts becomes a weight
// [experts * n, k]. Only float rounding may differ: the library may round a weight unlike the scheme.
// Returns the first of schemes() if several of its recipes have one meaning.
// Throws std::invalid_argument, "NAME: REASON", for a weight that was not joined (joins/join.h), and for one
// that no scheme holds exactly: columns in another order, floating zero points, codes of a table.
SchemeTensor kernel_planes(const NamedTensor& tensor);

}  // namespace qcts
