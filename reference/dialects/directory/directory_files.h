// SPDX-License-Identifier: BSD-3-Clause
// Finds the files of a directory that make up the checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

struct Shard {
  std::string name;
  std::vector<std::string> expected;  // keys that the index places in this shard
};

// Returns the shards of a directory. Looks for the fixed names of transformers, diffusers and peft.
// The names have the order of transformers: a single file before an index, safetensors before pickles.
// If none of these is there, takes the only index, or else the only weight file or numbered set of them:
// safetensors, before pickles, before GGUF.
// Throws Refused: NotArchive if there is none or more than one, StorageRef if a shard is missing.
// Adds a note about weight files that are not read.
std::vector<Shard> find_shards(const std::filesystem::path& directory, std::vector<std::string>& notes);

// Returns true if a weight file or an index has this name, whatever program reads it.
bool names_weights(std::string_view name);

// Returns true if the name is one of several shards', such as "model-00001-of-00003.safetensors".
bool names_one_of_several(const std::string& name);

// Returns the names of all shards of the set that the name belongs to, in order. Returns none if the name
// is not one of several shards'.
std::vector<std::string> names_of_set(const std::string& name);

// Throws Refused (Truncated) if a downloader's own file is next to this one.
// The file is then not complete and may be full of zeros.
void refuse_unfinished(const std::filesystem::path& path);

// Returns the path of a shard. The name must stay below the directory.
// A link may also lead to the folder where the hub's cache keeps the files of a snapshot.
// Throws Refused (EntryName) for any other path.
std::filesystem::path shard_path(const std::filesystem::path& directory, const std::string& name);

}  // namespace qcts
