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

// Names and their order, the producer's types, schemes, layouts, shapes, dtypes, attributes; of every inner
// tensor name, dtype, shape, stride, offset and elements; and which inner tensors share a storage. nullopt:
// equal. The element named is the first that differs, in the scheme's own terms where the layout is known.
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
// a legacy file, the same payload in the same order.
std::vector<WrittenFile> rewrite_files(const Checkpoint& checkpoint);

// Puts `files` below `folder` (beside copies of a directory's other files) and opens the result.
Checkpoint save_and_open(const Checkpoint& checkpoint, const std::vector<WrittenFile>& files,
                         const std::filesystem::path& folder, const OpenOptions& options = {});

// SHA-256 over "tensor.inner NUL sha256 LF" of every inner tensor in name order; of a plain tensor
// "tensor.data".
std::string payload_digest(const Checkpoint& checkpoint);

// One bit of the last element of the last inner tensor that has any; nullopt where nothing has elements.
std::optional<Checkpoint> with_flipped_bit(Checkpoint checkpoint);

}  // namespace qcts
