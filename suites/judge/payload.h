// SPDX-License-Identifier: BSD-3-Clause
// Compares the contents of two checkpoints (E2), and saves a checkpoint again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"

namespace qcts {

// Compares everything that two checkpoints hold (reference/comparison/content.h), including what one of the
// formats cannot hold. A different spelling of the same value is no difference. nullopt: equal; otherwise the
// first difference, by path.
std::optional<Mismatch> compare_payload(const Checkpoint& want, const Checkpoint& got);

// Compares two files' bytes (E3). nullopt: equal. `name` goes into the mismatch.
std::optional<Mismatch> compare_files(const std::string& name, std::span<const std::byte> want,
                                      std::span<const std::byte> got);

// Writes the parsed file again in its own format: one buffer for a file, one per shard for a directory, in
// the order of Checkpoint::zips, legacies and safetensors.
struct WrittenFile {
  std::filesystem::path path;  // the file it was read from
  std::vector<std::byte> bytes;
  // The part that was copied from the source rather than written; it proves nothing.
  std::string taken_over{};
};
std::vector<WrittenFile> rebuild_files(const Checkpoint& checkpoint);
// Writes the same tensors as a new file with the current writer: other record names and padding, a torch zip
// for a legacy file, the same payload in the same order.
std::vector<WrittenFile> rewrite_files(const Checkpoint& checkpoint);

// Writes `files` into `folder`, with copies of a directory's other files, and opens the result.
Checkpoint save_and_open(const Checkpoint& checkpoint, const std::vector<WrittenFile>& files,
                         const std::filesystem::path& folder, const OpenOptions& options = {});

// SHA-256 over "tensor.inner NUL sha256 LF" of every inner tensor in name order; "tensor.data" for a plain
// tensor.
std::string payload_digest(const Checkpoint& checkpoint);

// Flips one bit of the last element of the last non-empty inner tensor whose storage is a record of its own;
// nullopt if there is none.
std::optional<Checkpoint> with_flipped_bit(Checkpoint checkpoint);
// Another device of the first storage; nullopt for safetensors and where there are no tensors.
std::optional<Checkpoint> with_moved_device(Checkpoint checkpoint);
// Another value of the last number, string or flag of a pickle, outside of tensors, or one more pair in
// __metadata__ of safetensors; nullopt where there is none.
std::optional<Checkpoint> with_changed_value(Checkpoint checkpoint);

}  // namespace qcts
