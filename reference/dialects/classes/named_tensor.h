// SPDX-License-Identifier: BSD-3-Clause
// A checkpoint's tensor as its producer's class holds it: inner tensors and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/formats/tensor.h"
#include "reference/schemes/scheme.h"

namespace qcts {

struct InnerTensor {
  std::string name;  // dotted, depth-first in flatten order: "qdata", "tensor_impl.int_data"; "data" for a
                     // plain tensor
  Tensor tensor;
};

struct NamedTensor {
  std::string name;  // "linear1.weight"
  std::string type;  // the producer's class without module: "Int8Tensor", "AffineQuantizedTensor", "Tensor",
                     // "Parameter"
  std::string scheme;            // Scheme::name; empty when plain or unknown to the list
  std::optional<Layout> layout;  // nullopt without a scheme, and where the file cannot tell (CPU packs)
  Policy activation;             // that the file asks for, of the scheme's
  std::vector<int64_t> shape;    // of the tensor as the model sees it
  DType dtype = DType::float32;  // its logical dtype
  std::vector<InnerTensor> payload;
  nlohmann::ordered_json attributes =
      nlohmann::ordered_json::object();  // reference/dialects/classes/attributes.h
};

// Its name, or empty.
inline std::string layout_name(const std::optional<Layout>& layout) {
  return layout ? std::string(layout->name()) : std::string();
}

}  // namespace qcts
