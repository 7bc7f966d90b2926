// SPDX-License-Identifier: BSD-3-Clause
// Directories that are no checkpoint here, by what they hold.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

inline constexpr std::string_view kDistributedCheckpoint =
    "a distributed checkpoint of torch (.metadata and .distcp files): make one file of it with "
    "torch.distributed.checkpoint.format_utils.dcp_to_torch_save";

// Names a directory of torch.distributed.checkpoint, whatever weight files lie beside its own; empty: none.
std::string why_distributed(const std::filesystem::path& directory);

// Names weight files that hold a rank's part each, and what to give instead; empty: they are none.
std::string why_parts(const std::vector<std::string>& names);

// Why no weight file was found, and what to give instead: "a distributed checkpoint (...): ...".
std::string why_no_checkpoint(const std::filesystem::path& directory);

}  // namespace qcts
