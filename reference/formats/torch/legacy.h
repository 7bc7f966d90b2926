// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes torch.save's first format (torch/serialization.py, 2.13: _legacy_save).
// All files before torch 1.6 have this format, and files with _use_new_zipfile_serialization=False.
// The file begins with five consecutive pickles:
// the magic number, the protocol, the writer's machine, the object, and the sorted storage keys.
// For each key, an element count (u64) and the bytes follow.
// Integers and elements are little-endian on every machine.
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
  std::span<const std::byte> bytes;  // bytes as stored, or those of an edit
  uint64_t element_bytes = 1;        // unit of the count: element size by the first id of this storage
};

// One pickle in the file.
struct LegacyPickle {
  pickle::Ref root;
  uint64_t begin = 0, end = 0;
};

struct TorchLegacy : TorchObject {
  std::shared_ptr<const MappedFile> file;
  LegacyPickle protocol, sys_info, object, keys;  // object.root is the root as the file has it
  bool little_endian_writer = true;               // from sys_info; elements are little-endian anyway
  std::vector<LegacyRecord> records;              // in file order
};

// Returns true if the file begins with a pickle: PROTO and a version.
bool begins_with_pickle(std::span<const std::byte> file);

// Reads a legacy file. Offsets count from the file's first byte.
// Throws Refused for faults of the file's pickles and for these faults:
//   NotArchive    another magic number
//   PickleOpcode  a magic number that is not a literal
//   Version       another version of the protocol or of the pickle
//   StorageRef    unknown, missing or repeated keys; a count that differs from the id's
//   TensorBounds  a view outside its storage
//   Truncated     a file that ends early
//   TrailingData  bytes after the last storage
//   ByteOrder     complex elements of a big-endian writer, which swaps their halves
//                 (torch/csrc/serialization.cpp, THPStorage_writeFileRaw)
TorchLegacy read_torch_legacy(std::shared_ptr<const MappedFile> file, const TorchOptions& options = {});

// Writes the file again from the parsed graph and storages.
// RebuildNotes::kept_pickle covers all five pickles.
void rebuild_torch_legacy(const TorchLegacy& legacy, ByteSink& out, RebuildNotes* notes = nullptr);
std::vector<std::byte> rebuild_torch_legacy(const TorchLegacy& legacy, RebuildNotes* notes = nullptr);

}  // namespace qcts
