// SPDX-License-Identifier: BSD-3-Clause
// Encoders write torchao's classes.
// Each file encoders/<name>.cc handles one family of classes and has a line in encoders.inc.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "reference/dialects/encoders/encode.h"

namespace qcts {

struct Encoder {
  TorchaoClass cls;
  // Returns true if this is the class for the scheme in the layout under the policy.
  bool (*makes)(const Scheme& scheme, Layout layout, Policy activation);
  // Returns the object's __dict__ in its order, in the encoding of attributes.h.
  // Inner tensors are plane_here(), plane_as() or wrapper_here(); absent ones are null.
  // Excludes the values that the wrapper carries (shape, dtype).
  nlohmann::ordered_json (*state)(const SchemeTensor& tensor);
};

// Returns the encoders of encoders.inc in list order.
std::span<const Encoder* const> encoders();

// Stands for the plane that has the key's name, unchanged.
nlohmann::ordered_json plane_here();
// Stands for the plane `plane` in another type and shape. Its values must fit the type.
nlohmann::ordered_json plane_as(std::string_view plane, DType dtype, const std::vector<int64_t>& shape);
// Stands for the plane "qdata" of signed four-bit codes, two per int8 byte, the even one low.
nlohmann::ordered_json pairs_here(const std::vector<int64_t>& shape);
// Stands for a wrapper subclass inside another one. `state` has the form of Encoder::state.
nlohmann::ordered_json wrapper_here(std::string_view module, std::string_view name, DType dtype,
                                    const std::vector<int64_t>& shape, nlohmann::ordered_json state);
// Returns {"_type": TYPE, "_data": DATA}. A "_module" may be added for a class that today's torchao lacks,
// and
// "_shared" says whether all weights of a file have one such object: without it, only layouts are shared.
nlohmann::ordered_json typed_json(std::string_view type, nlohmann::ordered_json data);
// Returns the block [1, g], or [1, k] for scales of whole rows.
nlohmann::ordered_json group_block(const SchemeTensor& tensor);
// Returns true if the codes belong to torchao's first generation, for which today's torchao has no class.
bool is_int8_v1(const Scheme& scheme);
// Returns true for the classes that hold a weight of torchao's first generation.
bool holds_first_generation(const TorchaoClass& cls);

}  // namespace qcts
