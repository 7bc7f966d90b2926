// SPDX-License-Identifier: BSD-3-Clause
// Decoders map a class's tensors to a scheme.
// A decoder says which tensors a scheme describes, and where its planes are.
// Each file decoders/<name>.cc handles one family of classes and has a line in decoders.inc.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/decoders/scheme_tensor.h"

namespace qcts {

struct Recognized {
  std::string scheme;  // Scheme::name; empty: not recognized
  std::string layout;  // empty: the file does not record which CPU packed it
  std::string activation{kWeightOnly.name()};
};

struct Decoder {
  // Recognizes a two-dimensional tensor with checked parts.
  Recognized (*recognize)(const NamedTensor& tensor);
  // Returns the name of the inner tensor that holds a plane. nullptr: the inner tensor has the plane's name.
  std::string (*part)(const NamedTensor& tensor, std::string_view plane) = nullptr;
  // Converts a plane that the producer stored in another form, without changing its meaning.
  // `part` is nullptr if the tensor has no such part.
  // Returns nullopt if the plane cannot be converted. nullptr: every part is a plane already.
  std::optional<Plane> (*convert)(const NamedTensor& tensor, const Tensor* part,
                                  const PlaneSpec& spec) = nullptr;
  // Returns the policy planes that come from attributes and have no payload.
  // The planes follow policy_specs(). nullptr: there are no such planes.
  Planes (*parameters)(const NamedTensor& tensor) = nullptr;
};

// Returns the decoders of decoders.inc in list order. The first one that recognizes a tensor is used.
std::span<const Decoder* const> decoders();

// The functions below help the recognize() functions.
// Returns true if the attribute is absent or null.
bool is_null(const NamedTensor& tensor, std::string_view attribute);
bool any_payload(const NamedTensor& tensor, std::initializer_list<std::string_view> names);
// Returns the integers of an attribute that is a list or an encoded tuple.
// Returns an empty vector if the attribute is absent.
std::vector<int64_t> list_of(const NamedTensor& tensor, std::string_view attribute);
std::vector<int64_t> block_size_of(const NamedTensor& tensor);
bool one_scale_a_row(const NamedTensor& tensor);

// Returns true if every byte is zero.
bool all_zero(const Tensor& tensor);

// Converts float16 and bfloat16 elements to float32, exactly.
Plane widened(const Tensor& tensor, const PlaneSpec& spec);
Plane zeros(const PlaneSpec& spec);

}  // namespace qcts
