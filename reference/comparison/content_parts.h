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
#include "reference/dialects/own_metadata.h"

namespace qcts {

// Finds the tensors of a checkpoint by their storage.
class PlaceTable {
 public:
  explicit PlaceTable(const Content& content);
  // Returns "weight group 3, column 17" if the tensor has a scheme, "element 17" otherwise.
  std::string element_place(const Tensor& tensor, uint64_t index) const;
  // Returns "0.weight.qdata" for an entry "0._weight_qdata", or `name` if no tensor uses that storage.
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

TorchObjects objects_of(const Checkpoint& checkpoint);
// Compares safetensors of one dialect whose keys have the same form.
void compare_safetensors(const Content& a, const Content& b, ContentFindings& out);
// Compares GGUF files: every tensor with its type, and every value of the metadata.
void compare_ggufs(const Content& a, const Content& b, ContentFindings& out);
// Compares tensors by name, across containers and dialects.
void compare_across(const Content& a, const Content& b, ContentFindings& out);
void compare_beside(const Content& a, const Content& b, ContentFindings& out);

}  // namespace qcts
