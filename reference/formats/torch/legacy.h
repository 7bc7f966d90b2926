// SPDX-License-Identifier: BSD-3-Clause
// torch.save's first format (_use_new_zipfile_serialization=False, and every file before torch 1.6;
// torch/serialization.py, 2.13: _legacy_save). Five pickles one behind the other: the magic number, the
// protocol, the writer's machine, the object, the sorted keys of the storages; then, a key, its count of
// elements (u64) and its bytes. Integers and elements are little-endian on every machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/formats/io/byte_sink.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/torch/object.h"

namespace qcts {

struct LegacyRecord {
  std::string key;
  std::span<const std::byte> bytes;  // as stored; may be replaced by an edit
  uint64_t element_bytes = 1;  // of the class that the first id of this storage names: the unit of the count
};

// A span of the file that holds one pickle.
struct LegacyPickle {
  pickle::Ref root;
  uint64_t begin = 0, end = 0;
};

struct TorchLegacy : TorchObject {
  std::shared_ptr<const MappedFile> file;
  LegacyPickle protocol, sys_info, object, keys;  // object.root is `root` as it was read
  bool little_endian_writer = true;               // sys_info; the elements are little-endian all the same
  std::vector<LegacyRecord> records;              // in file order
};

// The first two bytes are those of a pickle: PROTO and a version.
bool begins_with_pickle(std::span<const std::byte> file);

// Refuses beside what the pickles can hold: NotArchive (another magic number), PickleOpcode (a magic number
// that is no literal), Version (the protocol, or the pickle's), StorageRef (keys unknown, missing or listed
// twice; a count that is not the id's), TensorBounds (a view outside its storage), Truncated, TrailingData,
// ByteOrder (complex elements of a big-endian writer, which swaps their halves: torch/csrc/serialization.cpp,
// THPStorage_writeFileRaw). Offsets count from the file's first byte.
TorchLegacy read_torch_legacy(std::shared_ptr<const MappedFile> file, const TorchOptions& options = {});

// The file from the parsed graph and storages. RebuildNotes::kept_pickle: any of the pickles.
void rebuild_torch_legacy(const TorchLegacy& legacy, ByteSink& out, RebuildNotes* notes = nullptr);
std::vector<std::byte> rebuild_torch_legacy(const TorchLegacy& legacy, RebuildNotes* notes = nullptr);

}  // namespace qcts
