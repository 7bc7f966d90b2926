// SPDX-License-Identifier: BSD-3-Clause
// Measures a checkpoint's size: payload, container, and the expected bytes of each weight.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"

namespace qcts {

struct WeightSize {
  std::string name;
  const Scheme* scheme = nullptr;
  WeightShape shape;
  uint64_t expected_bytes = 0;  // in the layout of the file
  uint64_t plain_bytes = 0;     // in layout "plain", which pads nothing
  uint64_t element_bytes = 0;   // of its inner tensors, as the file has them
  uint64_t dense_bytes = 0;
  uint64_t policy_bytes = 0;  // of plain_bytes, what the activation policy stores: scales of x, act_pre_scale
};

struct SizeCount {
  uint64_t file_bytes = 0;
  uint64_t files = 1;          // shards of a directory
  uint64_t payload_bytes = 0;  // storages, each once
  uint64_t expected_bytes =
      0;                     // of quantized weights by formula, of float tensors by their storages; each once
  uint64_t float_bytes = 0;  // the part of both that no scheme touches
  uint64_t dense_bytes = 0;
  uint64_t program_bytes =
      0;  // of a TorchScript archive: its code and what else is neither pickle nor storage
  uint64_t unseen_bytes =
      0;  // of storages of quantized weights that no element reaches, where the golden says so
  uint64_t inner_tensors = 0;
  std::vector<WeightSize> weights;
};

struct SizeFinding {
  std::string reason;
  Mismatch mismatch;
};

// Tensor name -> layout, for packs that the file cannot tell apart.
using LayoutHints = std::map<std::string, std::string>;

// folder/size.json, checked. Throws std::runtime_error naming the file.
nlohmann::ordered_json load_size_targets(const std::filesystem::path& folder);
SizeCount count_size(const Checkpoint& checkpoint, const LayoutHints& hints);
// For each file: base_bytes + per_inner_tensor_bytes * inner tensors of all of them, whose metadata
// transformers repeats in every shard.
uint64_t container_bound_bytes(const SizeCount& count, const nlohmann::ordered_json& targets);
// nullopt where no target holds: no entry, k too small, or a layout that pads.
std::optional<double> minimum_reduction(const WeightSize& weight, const nlohmann::ordered_json& targets);
// The first thing that is not as it should be.
std::optional<SizeFinding> size_finding(const SizeCount& count, const nlohmann::ordered_json& targets);
void add_size_measures(const SizeCount& count, const nlohmann::ordered_json& targets, Verdict& verdict);

}  // namespace qcts
