// SPDX-License-Identifier: BSD-3-Clause
// The ClassSchema::outer functions of torchao's integer classes, defined in integer_schemas.cc.
// Each derives the shape and dtype of the whole tensor from checked parts.
#pragma once

#include "reference/dialects/classes/schema.h"

namespace qcts {

Outer int8_outer(const NamedTensor& tensor);
Outer int4_outer(const NamedTensor& tensor);
Outer int4_int32_outer(const NamedTensor& tensor);
Outer int4_tile_outer(const NamedTensor& tensor);
Outer int4_opaque_outer(const NamedTensor& tensor);
Outer intx_outer(const NamedTensor& tensor);
Outer gguf_outer(const NamedTensor& tensor);

}  // namespace qcts
