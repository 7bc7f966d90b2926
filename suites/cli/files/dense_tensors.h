// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a checkpoint as floats that safetensors holds, for `dequantize` and `convert --to dense`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts::cli {

class DenseTensors {
 public:
  // `cpu_pack` is the pack of CPU int4 weights, as assumed_layout() returns it.
  DenseTensors(const Checkpoint& checkpoint, std::string cpu_pack);

  // Returns what keeps the checkpoint, not one of its tensors, from being floats: contradictions of the whole
  // checkpoint, tensors that are listed but not stored, and numpy arrays.
  std::vector<std::string> obstacles() const;

  struct Read {
    std::optional<Tensor> tensor;
    std::string why_not;  // "NAME: reason", if there is no tensor
  };
  Read read(const NamedTensor& tensor) const;

 private:
  const Checkpoint& checkpoint_;
  std::string cpu_pack_;
  std::map<std::string_view, const CheckpointFinding*> contradictions_;
};

// Notes the weights whose writer's dequantize() gives other bits than its kernel: choice int4_multiply_add.
void note_two_roundings(const Checkpoint& checkpoint);

}  // namespace qcts::cli
