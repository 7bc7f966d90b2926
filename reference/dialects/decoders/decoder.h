// SPDX-License-Identifier: BSD-3-Clause
// Decoders map a class's tensors to a scheme: which tensors a scheme describes, and where their planes are.
// Each decoders/<name>.cc handles one family of classes and has a line in decoders.inc.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/dialects/decoders/scheme_tensor.h"

namespace qcts {

struct Recognized {
  std::string scheme;  // Scheme::name; empty: not recognized
  std::string layout;  // empty: the file cannot tell which CPU packed it
  std::string activation{kWeightOnly.name()};
};

struct Decoder {
  // Recognizes a two-dimensional tensor with checked parts.
  Recognized (*recognize)(const NamedTensor& tensor);
  // Returns the inner tensor that holds a plane; nullptr: the one with the plane's name.
  std::string (*part)(const NamedTensor& tensor, std::string_view plane) = nullptr;
  // Converts a plane that the producer stored in another form, without changing its meaning. `part` is
  // nullptr where the tensor has none; nullopt: not convertible. nullptr: every part is its plane.
  std::optional<Plane> (*convert)(const NamedTensor& tensor, const Tensor* part,
                                  const PlaneSpec& spec) = nullptr;
  // Returns policy planes that come from attributes and have no payload; they follow policy_specs(). nullptr:
  // none.
  Planes (*parameters)(const NamedTensor& tensor) = nullptr;
};

// The decoders of decoders.inc in list order; the first that recognizes a tensor is used.
std::span<const Decoder* const> decoders();

// Helpers of the recognize() functions.
bool is_null(const NamedTensor& tensor, std::string_view attribute);  // absent or null
bool any_payload(const NamedTensor& tensor, std::initializer_list<std::string_view> names);
// Returns an attribute that is a list or an encoded tuple; empty when absent.
std::vector<int64_t> list_of(const NamedTensor& tensor, std::string_view attribute);
std::vector<int64_t> block_size_of(const NamedTensor& tensor);
bool one_scale_a_row(const NamedTensor& tensor);
// Returns the name in an enum or dtype object: {"_type": .., "_data": "NAME"} -> "NAME"; "" otherwise.
std::string data_name(const nlohmann::ordered_json& value);

bool all_zero(const Tensor& tensor);  // are all bytes zero?

// Converts float16 and bfloat16 elements to float32, exactly.
Plane widened(const Tensor& tensor, const PlaneSpec& spec);
Plane zeros(const PlaneSpec& spec);

}  // namespace qcts
