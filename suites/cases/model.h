// SPDX-License-Identifier: BSD-3-Clause
// The linear layers of a model, read from its config.json as transformers writes it, and the cases on them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "suites/cases/case.h"
#include "suites/cases/offers.h"
#include "suites/cases/selection/selection.h"

namespace qcts {

inline constexpr int64_t kLayerRows[] = {1, 8, 33, 512};  // m of the cases on a layer

struct Model {
  struct Layer {
    std::string names;  // "q_proj, o_proj": all layers of this size
    int64_t n = 0, k = 0;
  };
  std::string type;  // model_type
  DType dtype = DType::bfloat16;
  std::vector<Layer> layers;    // in the order of the model, one for each size
  std::vector<int64_t> groups;  // of its quantization_config; empty: it names none
  std::vector<int> bits;        // the same
};

// Reads a config.json. Throws UsageError, which names the file, for one that is not JSON, that lacks a
// number, or whose model_type qcts does not know.
Model read_model(const std::filesystem::path& config);
std::vector<std::string> known_model_types();  // sorted

struct ModelCases {
  std::vector<Case> cases;            // without an implementation
  std::vector<std::string> left_out;  // "lm_head (n 128256, k 4096) with m 512: ..."
};
// Returns numerics.linear of each layer for each of kLayerRows, for the schemes and policies of the offers
// that the selection takes, that have the model's group length and bits. Throws UsageError if there is none,
// or if more than four schemes of a family fit and the selection names none of them.
ModelCases model_cases(const Model& model, const OfferTable& offers, const Selection& selection);

// Returns the case of a layer of any size that an id names:
// numerics.linear/int8_row/layer_m8_n4096_k4096_bf16.
std::optional<Case> layer_case(const CaseId& id);

}  // namespace qcts
