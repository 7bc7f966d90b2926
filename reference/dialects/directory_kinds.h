// SPDX-License-Identifier: BSD-3-Clause
// Recognizes directories that hold no checkpoint that this project reads.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace qcts {

inline constexpr std::string_view kDistributedCheckpoint =
    "a distributed checkpoint of torch (.metadata and .distcp files): make one file of it with "
    "torch.distributed.checkpoint.format_utils.dcp_to_torch_save";

// Says why a directory has no weight file and which path to pass instead:
// "a distributed checkpoint (...): ...".
std::string why_no_checkpoint(const std::filesystem::path& directory);

}  // namespace qcts
