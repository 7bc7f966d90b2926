// SPDX-License-Identifier: BSD-3-Clause
// Removes storage bytes that no tensor uses.
// Saving a slice of a large tensor leaves such bytes.
// Tensors that share a storage still share it, including overlaps.
#pragma once

#include <cstdint>

#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/zip.h"

namespace qcts {

struct CompactReport {
  uint64_t dropped_bytes = 0;
  uint64_t changed_storages = 0;  // number of storages that were shortened or removed
};

// Returns the object without the gaps between its tensors' extents, and with adjusted offsets.
// Gaps are cut in steps of the widest element that reads the storage.
// A tensor's extent reaches from its first element to its last, strides included.
// A storage stays whole if anything but a strided or quantized tensor names it.
// A record that nothing names is removed. Write the result with rebuild_torch_zip or rebuild_torch_legacy.
// The argument is unchanged.
TorchZip compacted(const TorchZip& zip, CompactReport& report);
TorchLegacy compacted(const TorchLegacy& legacy, CompactReport& report);

}  // namespace qcts
