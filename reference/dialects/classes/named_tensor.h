// SPDX-License-Identifier: BSD-3-Clause
// A tensor of a checkpoint as the producer's class holds it, with inner tensors and attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/formats/gguf/types.h"
#include "reference/formats/tensor.h"
#include "reference/schemes/scheme.h"

namespace qcts {

struct CodedWeight;  // classes/coded_weight.h

struct InnerTensor {
  // A dotted name, depth-first in flatten order: "qdata", "tensor_impl.int_data"; "data" for a plain tensor.
  std::string name;
  Tensor tensor;
};

struct NamedTensor {
  std::string name;  // "linear1.weight"; the name on disk
  // The producer's class without its module: "Int8Tensor", "AffineQuantizedTensor", "Tensor", "Parameter".
  std::string type;
  std::string scheme;            // Scheme::name; empty for a plain tensor or a class without one
  std::optional<Layout> layout;  // nullopt without a scheme, or if the file does not record it (CPU packs)
  Policy activation;             // one of the scheme's policies: the one that the file asks for
  std::vector<int64_t> shape;    // the shape that the model sees
  DType dtype = DType::float32;  // its logical dtype
  std::string_view foreign{};  // ForeignFormat::name for a part of a weight in a format that qcts cannot read
  std::shared_ptr<const CodedWeight> coded{};  // set for a weight of another library that a join describes
  // Set for a quantized GGUF tensor, whose only payload is "blocks" (blocks/blocks.h). If the type is not
  // decoded, `foreign` is its name.
  const GgufType* blocks = nullptr;
  std::vector<InnerTensor> payload;
  nlohmann::ordered_json attributes =
      nlohmann::ordered_json::object();  // reference/dialects/classes/attributes.h
  // The names in memory, if torchao's metadata lists others: transformers renames, merges and splits tensors.
  std::vector<std::string> in_memory{};
};

// Attributes that no schema knows have this prefix: "state._is_param". Their tensors are parts of that name.
inline constexpr std::string_view kFurther = "state.";

// Returns true for a part or attribute that does not change the elements: a further attribute of a tensor, a
// slot, or the spec of a DTensor.
inline bool is_beside_elements(std::string_view name) {
  return name.starts_with(kFurther) || name.starts_with("slots.") || name.starts_with("dtensor.");
}

// Returns the layout's name, or an empty string.
inline std::string layout_name(const std::optional<Layout>& layout) {
  return layout ? std::string(layout->name()) : std::string();
}

}  // namespace qcts
