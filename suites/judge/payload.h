// SPDX-License-Identifier: BSD-3-Clause
// Two checkpoints compared by what they hold (E2), and a checkpoint saved anew.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"

namespace qcts {

// All that two checkpoints hold (reference/comparison/content.h), also what one of them has no place for;
// another spelling of the same is none. nullopt: equal. The first difference by path.
std::optional<Mismatch> compare_payload(const Checkpoint& want, const Checkpoint& got);

// Two files' bytes (E3); nullopt: equal. `name` goes into the mismatch.
std::optional<Mismatch> compare_files(const std::string& name, std::span<const std::byte> want,
                                      std::span<const std::byte> got);

// The file's bytes as its own reader's writer lays them out from the parsed graph: one buffer for a file, one
// a shard for a directory, in the order of Checkpoint::zips, legacies and safetensors.
struct WrittenFile {
  std::filesystem::path path;  // what it was read from
  std::vector<std::byte> bytes;
  std::string taken_over{};  // what was copied from the source instead of written anew: proves nothing
};
std::vector<WrittenFile> rebuild_files(const Checkpoint& checkpoint);
// The same tensors written as a new file by today's writer: other record names and paddings, a torch zip for
// a legacy file, the same payload.
std::vector<WrittenFile> rewrite_files(const Checkpoint& checkpoint);

// Puts `files` below `folder` (beside copies of a directory's other files) and opens the result.
Checkpoint save_and_open(const Checkpoint& checkpoint, const std::vector<WrittenFile>& files,
                         const std::filesystem::path& folder, const OpenOptions& options = {});

// SHA-256 over "tensor.inner NUL sha256 LF" of every inner tensor in name order; of a plain tensor
// "tensor.data".
std::string payload_digest(const Checkpoint& checkpoint);

// One bit of the last element of the last inner tensor that has any; nullopt where nothing has elements.
std::optional<Checkpoint> with_flipped_bit(Checkpoint checkpoint);
// Another device of the first storage; nullopt for safetensors and where there are no tensors.
std::optional<Checkpoint> with_moved_device(Checkpoint checkpoint);
// Another value of the last number, string or flag of a pickle, outside of tensors, or one more pair in
// __metadata__ of safetensors; nullopt where there is none.
std::optional<Checkpoint> with_changed_value(Checkpoint checkpoint);

}  // namespace qcts
