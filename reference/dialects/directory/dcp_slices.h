// SPDX-License-Identifier: BSD-3-Clause
// Recognizes the shards of torch.distributed.checkpoint's HuggingFaceStorageWriter (save_distributed=True),
// in which each rank saves its own part of a tensor. A shard's metadata says where the part begins, but not
// how large the tensor is (torch 2.13.0, distributed/checkpoint/_hf_utils.py).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/safetensors/safetensors.h"

namespace qcts {

// The key of a shard's metadata that says where its parts begin.
inline constexpr std::string_view kDcpSharding = "DCP_SHARDING_INFO";

// Returns true for the name of such a shard: "shard-00002-model-00001-of-00001.safetensors".
bool names_dcp_shard(std::string_view name);

// The shards of one checkpoint.
class DcpSlices {
 public:
  // Adds the tensors of a file. Throws Refused (NotArchive) for the first tensor that is a part: it does
  // not begin at its first element, or another file holds more of it.
  void add(const Safetensors& file, const std::string& name);

 private:
  std::map<std::string, std::string, std::less<>> files_;  // the file of each tensor of such a shard
};

// Does the same for a single file. Its neighbors show whether it holds the whole tensors. If
// there are none, adds a note.
void refuse_dcp_slices(const Safetensors& file, std::vector<std::string>& notes);

}  // namespace qcts
