// SPDX-License-Identifier: BSD-3-Clause
// A tensor of a checkpoint as its producer's class holds it: inner tensors and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  std::string scheme;  // Scheme::name; empty when plain or unknown to the list
  std::string layout;  // "plain", "tile_packed_4d", "cpu_avx512" ...; empty when plain or when the file
                       // cannot tell (CPU packs)
  std::string activation{kWeightOnly};  // the policy that the file asks for, of the scheme's
  std::vector<int64_t> shape;           // of the tensor that the model sees
  DType dtype = DType::float32;         // its logical dtype
  std::string_view foreign{};  // ForeignFormat::name, of a part of a weight in a format that is not read
  std::vector<InnerTensor> payload;
  nlohmann::ordered_json attributes =
      nlohmann::ordered_json::object();  // reference/dialects/classes/attributes.h
};

}  // namespace qcts
