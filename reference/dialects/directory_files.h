// SPDX-License-Identifier: BSD-3-Clause
// Which files of a directory are the checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

struct Shard {
  std::string name;
  std::vector<std::string> expected;  // keys that the index places here
};

// The fixed names that transformers, diffusers and peft look for, in transformers' order: a single file
// before an index, safetensors before pickles. Else the one index, else the one weight file. Refuses
// NotArchive where that leaves none or several, StorageRef for a shard that is not there. Files beside that
// are not read are a note.
std::vector<Shard> find_shards(const std::filesystem::path& directory, std::vector<std::string>& notes);

// Is it the name of a weight file or of an index, whatever reads it?
bool names_weights(std::string_view name);

// Is it the name of one of several shards, "model-00001-of-00003.safetensors"?
bool names_one_of_several(const std::string& name);

// Throws Refused (Truncated) if a downloader's own file lies beside this one, which is then not complete and
// may be full of zeros.
void refuse_unfinished(const std::filesystem::path& path);

// A shard's name may lead nowhere but beneath the directory; its link also to where the hub's cache keeps the
// files of a snapshot. Throws Refused (EntryName).
std::filesystem::path shard_path(const std::filesystem::path& directory, const std::string& name);

}  // namespace qcts
