// SPDX-License-Identifier: BSD-3-Clause
// How torchao's classes are written: one family of classes a file, reference/dialects/spellings/<name>.cc,
// and one line in spellings.inc.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "reference/dialects/spellings/spell.h"

namespace qcts {

struct Spelling {
  TorchaoClass cls;
  // Is this the class for the scheme in the layout under the policy?
  bool (*makes)(const Scheme& scheme, Layout layout, Policy activation);
  // The object's __dict__ in its own order, in the encoding of attributes.h. An inner tensor stands as
  // plane_here(), an absent one as null. What the wrapper carries (shape, dtype) is not in it.
  nlohmann::ordered_json (*state)(const SchemeTensor& tensor);
};

// Those of spellings.inc in list order.
std::span<const Spelling* const> spellings();

nlohmann::ordered_json plane_here();
// {"_type": TYPE, "_data": DATA}
nlohmann::ordered_json typed_json(std::string_view type, nlohmann::ordered_json data);
// [1, g], or [1, k] for scales of whole rows
nlohmann::ordered_json group_block(const SchemeTensor& tensor);

}  // namespace qcts
