// SPDX-License-Identifier: BSD-3-Clause
// Storages without the bytes that no tensor sees: what saving a slice of a large tensor leaves in a file.
// Tensors that share a storage go on sharing it, overlaps included.
#pragma once

#include <cstdint>

#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/zip.h"

namespace qcts {

struct CompactReport {
  uint64_t dropped_bytes = 0;
  uint64_t changed_storages = 0;  // shorter than before, or gone
};

// The object with every gap between the extents of its tensors cut out, in steps of the widest element over
// that storage, and the offsets moved by as much. The extent of a tensor reaches from its first element to
// its last one, strides included. A storage that is named by anything but a strided or quantized tensor stays
// whole; a record that nothing names goes. Write it with rebuild_torch_zip / rebuild_torch_legacy. The
// argument stays as it is.
TorchZip compacted(const TorchZip& zip, CompactReport& report);
TorchLegacy compacted(const TorchLegacy& legacy, CompactReport& report);

}  // namespace qcts
