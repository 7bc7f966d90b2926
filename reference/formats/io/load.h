// SPDX-License-Identifier: BSD-3-Clause
// Copies storages from their file into memory with several threads.
// The threads read (pread) and do not fault pages in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/tensor.h"

namespace qcts {

// Returns the number of bytes that load_storages needs for the storages in `file`, each aligned to 64 bytes.
uint64_t loaded_bytes(std::span<const std::shared_ptr<const Storage>> storages);

// Returns copies of `storages`, in order.
// The bytes of the copies are in `memory`, which has at least loaded_bytes and which `owner` keeps alive.
// A storage outside `file` is copied from where it is.
// Big-endian storages are of this kind, because they are swapped on the heap. Throws IoError.
std::vector<std::shared_ptr<const Storage>> load_storages(
    const MappedFile& file, std::span<const std::shared_ptr<const Storage>> storages,
    std::span<std::byte> memory, std::shared_ptr<const void> owner, unsigned threads);

}  // namespace qcts
