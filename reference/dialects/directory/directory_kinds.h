// SPDX-License-Identifier: BSD-3-Clause
// Recognizes directories without a checkpoint that this project reads.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/directory/directory_files.h"

namespace qcts {

inline constexpr std::string_view kDistributedCheckpoint =
    "a distributed torch checkpoint (.metadata and .distcp files): make one file from it with "
    "torch.distributed.checkpoint.format_utils.dcp_to_torch_save; quantized torchao tensors, which that "
    "cannot read, with torch.distributed.checkpoint.load(state, checkpoint_id=FOLDER) into the state_dict() "
    "of the "
    "model, "
    "quantized in the same way, and torch.save(state)";

// Names a directory of torch.distributed.checkpoint, whatever weight files are next to its own files.
// Returns an empty string for any other directory.
std::string why_distributed(const std::filesystem::path& directory);

// Describes weight files that each hold one rank's part, and says what to pass instead.
// Returns an empty string if the files are something else.
std::string why_parts(const std::vector<std::string>& names);

// Says why a directory has no weight file and which path to pass instead:
// "a distributed checkpoint (...): ...".
std::string why_no_checkpoint(const std::filesystem::path& directory);

// Adds a note if an index names fewer shards than the file names count; transformers ignores this.
void note_unnamed(const std::string& index, const std::vector<Shard>& shards,
                  std::vector<std::string>& notes);

}  // namespace qcts
