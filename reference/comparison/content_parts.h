// SPDX-License-Identifier: BSD-3-Clause
// Parts of compare_content.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference/comparison/content.h"
#include "reference/comparison/graph.h"

namespace qcts {

// Tensors of a checkpoint by the storage that they lie in.
class PlaceTable {
 public:
  explicit PlaceTable(const Content& content);
  // "weight group 3, column 17" in the terms of the tensor's scheme, "element 17" where it has none.
  std::string element_place(const Tensor& tensor, uint64_t index) const;
  // "0.weight.qdata" of an entry "0._weight_qdata"; `name` where no tensor lies there.
  std::string path_of(const Tensor& tensor, const std::string& name) const;

 private:
  struct Part {
    const NamedTensor* named;
    const InnerTensor* inner;
  };
  const Part* find(const Tensor& tensor) const;
  const std::string& cpu_layout_;
  std::unordered_map<const Storage*, std::vector<Part>> parts_;
};

// The tensor that a key of __metadata__ describes to the checkpoint's dialect, "" for a list of them; nullopt
// for a key of the file's own.
std::optional<std::string> described_tensor(const Checkpoint& checkpoint, const std::string& key);

// __metadata__ of all shards: what one of them says, and of tensor_names the lists one after the other.
std::map<std::string, std::string> metadata_of(const Checkpoint& checkpoint);

TorchObjects objects_of(const Checkpoint& checkpoint);
// Safetensors of one dialect and one spelling of names.
void compare_safetensors(const Content& a, const Content& b, ContentFindings& out);
// Tensors by name, across containers and dialects.
void compare_across(const Content& a, const Content& b, ContentFindings& out);
void compare_beside(const Content& a, const Content& b, ContentFindings& out);

}  // namespace qcts
