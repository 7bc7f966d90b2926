// SPDX-License-Identifier: BSD-3-Clause
// Compares the contents of two checkpoints (E2), and saves a checkpoint again.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"

namespace qcts {

// Compares everything that two checkpoints hold (reference/comparison/content.h).
// Values that one of the formats cannot hold are included.
// A different spelling of the same value is not a difference.
// Returns the first difference, by path, or nullopt if the checkpoints are equal.
std::optional<Mismatch> compare_payload(const Checkpoint& want, const Checkpoint& got);

// Compares the bytes of two files (E3). Returns nullopt if they are equal. `name` goes into the mismatch.
std::optional<Mismatch> compare_files(const std::string& name, std::span<const std::byte> want,
                                      std::span<const std::byte> got);

// Holds a parsed file that is written again in its own format.
// A file has one buffer, a directory one per shard.
// The files have the order of Checkpoint::zips, legacies, safetensors and ggufs.
struct WrittenFile {
  std::filesystem::path path;  // the file from which it was read
  std::vector<std::byte> bytes;
  // The part that was copied from the source and not written anew, which proves nothing.
  std::string taken_over{};
};
using FileVisit = std::function<void(WrittenFile file)>;
// Shows the files one after the other, so that one of them is in memory at a time.
void rebuild_files(const Checkpoint& checkpoint, const FileVisit& visit);

// Writes the same tensors as new files with the current writer into `folder`, with copies of a directory's
// other files, and opens the result. Record names and padding differ, a legacy file becomes a torch zip, and
// the payload keeps its order.
Checkpoint rewrite_and_open(const Checkpoint& checkpoint, const std::filesystem::path& folder,
                            const OpenOptions& options = {});

// Returns the SHA-256 over "tensor.inner NUL sha256 LF" of every inner tensor in the order of names.
// A plain tensor is "tensor.data".
std::string payload_digest(const Checkpoint& checkpoint);

// Flips one bit of the last element of the last non-empty inner tensor whose storage is a separate record.
// Returns nullopt if there is none.
std::optional<Checkpoint> with_flipped_bit(Checkpoint checkpoint);
// Gives the first storage another device. Returns nullopt for safetensors and GGUF, and if there are no
// tensors.
std::optional<Checkpoint> with_moved_device(Checkpoint checkpoint);
// Changes the last number, string or flag of a pickle that is not part of a tensor.
// For safetensors and GGUF, adds one more pair of metadata. Returns nullopt if there is none.
std::optional<Checkpoint> with_changed_value(Checkpoint checkpoint);

}  // namespace qcts
