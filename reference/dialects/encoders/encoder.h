// SPDX-License-Identifier: BSD-3-Clause
// Encoders write torchao's classes. Each encoders/<name>.cc handles one family of classes and has a line in
// encoders.inc.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "reference/dialects/encoders/encode.h"

namespace qcts {

struct Encoder {
  TorchaoClass cls;
  // Is this the class for the scheme in the layout under the policy?
  bool (*makes)(const Scheme& scheme, Layout layout, Policy activation);
  // Returns the object's __dict__ in its order, in the encoding of attributes.h. Inner tensors are
  // plane_here(), plane_as() or wrapper_here(), absent ones null. Excludes what the wrapper carries (shape,
  // dtype).
  nlohmann::ordered_json (*state)(const SchemeTensor& tensor);
};

// The encoders of encoders.inc in list order.
std::span<const Encoder* const> encoders();

// The plane with the key's name, as it is.
nlohmann::ordered_json plane_here();
// The plane `plane` in another type and shape; its values must fit the type.
nlohmann::ordered_json plane_as(std::string_view plane, DType dtype, const std::vector<int64_t>& shape);
// A wrapper subclass inside another one. state: as Encoder::state.
nlohmann::ordered_json wrapper_here(std::string_view module, std::string_view name, DType dtype,
                                    const std::vector<int64_t>& shape, nlohmann::ordered_json state);
// {"_type": TYPE, "_data": DATA}
nlohmann::ordered_json typed_json(std::string_view type, nlohmann::ordered_json data);
// [1, g], or [1, k] for scales of whole rows
nlohmann::ordered_json group_block(const SchemeTensor& tensor);
// Are the codes those of torchao's first generation, for which today's torchao has no class?
bool is_int8_v1(const Scheme& scheme);

}  // namespace qcts
