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
  // plane_here(), absent ones null. Excludes what the wrapper carries (shape, dtype).
  nlohmann::ordered_json (*state)(const SchemeTensor& tensor);
};

// The encoders of encoders.inc in list order.
std::span<const Encoder* const> encoders();

nlohmann::ordered_json plane_here();
// {"_type": TYPE, "_data": DATA}
nlohmann::ordered_json typed_json(std::string_view type, nlohmann::ordered_json data);
// [1, g], or [1, k] for scales of whole rows
nlohmann::ordered_json group_block(const SchemeTensor& tensor);

}  // namespace qcts
