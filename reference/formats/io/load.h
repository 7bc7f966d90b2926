// SPDX-License-Identifier: BSD-3-Clause
// Copies storages from their file into memory with several threads that read (pread) instead of faulting
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

// Returns the bytes that load_storages needs: the storages that lie in `file`, each aligned to 64 bytes.
uint64_t loaded_bytes(std::span<const std::shared_ptr<const Storage>> storages);

// Returns copies of `storages`, in order, with their bytes in `memory` (at least loaded_bytes, kept alive by
// `owner`). A storage outside `file` (big-endian ones are swapped on the heap) is copied from where it is.
// Throws IoError.
std::vector<std::shared_ptr<const Storage>> load_storages(
    const MappedFile& file, std::span<const std::shared_ptr<const Storage>> storages,
    std::span<std::byte> memory, std::shared_ptr<const void> owner, unsigned threads);

}  // namespace qcts
