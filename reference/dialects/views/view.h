// SPDX-License-Identifier: BSD-3-Clause
// A view: which tensors of which classes are a scheme's, and where their planes lie. One family of classes a
// file, reference/dialects/views/<name>.cc, and one line in views.inc.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/dialects/views/scheme_tensor.h"

namespace qcts {

struct Recognized {
  std::string scheme;  // Scheme::name; empty: not this view's
  std::string layout;  // empty: the file cannot tell which CPU packed it
  std::string activation{kWeightOnly.name()};
};

struct View {
  // Of a tensor whose parts are checked and whose shape has two dimensions.
  Recognized (*recognize)(const NamedTensor& tensor);
  // The inner tensor that holds a plane of the scheme; nullptr: the one with the plane's name.
  std::string (*part)(const NamedTensor& tensor, std::string_view plane) = nullptr;
  // A plane that the producer stored otherwise with the same meaning, exactly. `part` is nullptr where the
  // tensor has none. nullopt: it is no such plane. nullptr: every part is its plane.
  std::optional<Plane> (*convert)(const NamedTensor& tensor, const Tensor* part,
                                  const PlaneSpec& spec) = nullptr;
  // What the policy takes from attributes: planes without payload, behind those of policy_specs(). nullptr:
  // none.
  Planes (*parameters)(const NamedTensor& tensor) = nullptr;
};

// The views of views.inc in list order; the first that recognizes a tensor has it.
std::span<const View* const> views();

// What recognize() functions ask.
bool is_null(const NamedTensor& tensor, std::string_view attribute);  // absent or null
bool any_payload(const NamedTensor& tensor, std::initializer_list<std::string_view> names);
// The list behind an attribute, a list or a tuple in its encoding; empty when there is none.
std::vector<int64_t> list_of(const NamedTensor& tensor, std::string_view attribute);
std::vector<int64_t> block_size_of(const NamedTensor& tensor);
bool one_scale_a_row(const NamedTensor& tensor);
// name of an enum or dtype object: {"_type": .., "_data": "NAME"} -> "NAME"; "" otherwise.
std::string data_name(const nlohmann::ordered_json& value);

bool all_zero(const Tensor& tensor);  // every byte

// float16 and bfloat16 elements as float32, exactly.
Plane widened(const Tensor& tensor, const PlaneSpec& spec);
Plane zeros(const PlaneSpec& spec);

}  // namespace qcts
