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
  uint64_t plain_bytes = 0;     // in layout "plain", which has no padding
  uint64_t element_bytes = 0;   // stored bytes of the elements of its inner tensors
  uint64_t dense_bytes = 0;
  // The part of plain_bytes that the activation policy stores: scales of x, act_pre_scale.
  uint64_t policy_bytes = 0;
};

struct SizeCount {
  uint64_t file_bytes = 0;
  uint64_t files = 1;          // number of files: the shards of a directory
  uint64_t payload_bytes = 0;  // each storage counted once
  // Size formulas of the quantized weights plus the storages of float tensors, each counted once.
  uint64_t expected_bytes = 0;
  uint64_t float_bytes = 0;  // the part of both that no scheme touches
  uint64_t dense_bytes = 0;
  // The code of a TorchScript archive, and everything else in it that is neither pickle nor storage.
  uint64_t program_bytes = 0;
  // Storage bytes of quantized weights that no element of any tensor reaches.
  // These bytes count in judge_size() only if the golden flags them.
  uint64_t unseen_bytes = 0;
  uint64_t metadata_bytes = 0;  // see container_size.h
  uint64_t padding_bytes = 0;
  uint64_t inner_tensors = 0;

  // Returns the bytes that are not overhead of the container.
  uint64_t own_bytes() const { return payload_bytes + program_bytes + metadata_bytes + padding_bytes; }
  std::vector<WeightSize> weights;
};

struct SizeFinding {
  std::string reason;
  Mismatch mismatch;
};

// Maps tensor names to layouts, for packings that the file does not record.
using LayoutHints = std::map<std::string, std::string>;

// Loads and checks folder/size.json. Throws std::runtime_error, which names the file.
nlohmann::ordered_json load_size_targets(const std::filesystem::path& folder);
SizeCount count_size(const Checkpoint& checkpoint, const LayoutHints& hints);
// Returns the sum over the files of base_bytes + per_inner_tensor_bytes * inner tensors of all files.
// transformers repeats the metadata of all inner tensors in every shard.
uint64_t container_bound_bytes(const SizeCount& count, const nlohmann::ordered_json& targets);
// Returns nullopt if no target applies: there is no entry, k is too small, or the layout is padded.
std::optional<double> minimum_reduction(const WeightSize& weight, const nlohmann::ordered_json& targets);
// Returns the first problem found, or nullopt.
std::optional<SizeFinding> size_finding(const SizeCount& count, const nlohmann::ordered_json& targets);
void add_size_measures(const SizeCount& count, const nlohmann::ordered_json& targets, Verdict& verdict);

}  // namespace qcts
