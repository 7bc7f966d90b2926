// SPDX-License-Identifier: BSD-3-Clause
// Storages copied out of their file into memory, by several threads that read (pread) instead of faulting
// pages in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/tensor.h"

namespace qcts {

// Bytes that load_storages needs: every storage of `file` among `storages`, each at a multiple of 64 bytes.
uint64_t loaded_bytes(std::span<const std::shared_ptr<const Storage>> storages);

// Copies of `storages`, in order, whose bytes lie in `memory` (at least loaded_bytes, kept alive by `owner`).
// A storage that does not lie in `file` (big-endian ones are swapped on the heap) is copied from where it is.
// Throws IoError.
std::vector<std::shared_ptr<const Storage>> load_storages(
    const MappedFile& file, std::span<const std::shared_ptr<const Storage>> storages,
    std::span<std::byte> memory, std::shared_ptr<const void> owner, unsigned threads);

}  // namespace qcts
