// torch.save's zip container (torch 1.6 to 2.13; caffe2/serialize/inline_container.cc): stored entries, a pickle, one record a
// storage. Facts and byte layout: the comments in torch_zip_reader.cc and torch_zip_writer.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference/formats/mapped_file.h"
#include "reference/formats/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

struct ZipRecord {
  std::string name;  // without the archive's prefix: "data.pkl", "data/0"
  std::span<const std::byte> bytes;
  bool crc_written = true;      // false for torch.serialization.set_crc32_options(False) and skipped data: recorded as 0
  uint64_t header_offset = 0;   // of the local header
  uint64_t data_offset = 0;     // of the first data byte
  uint64_t recorded_bytes = 0;  // size and CRC-32 in the file; `bytes` may be replaced by an edit
  uint32_t recorded_crc = 0;
};

enum class CrcPolicy : uint8_t {
  verify,
  skip,    // the storages' are not compared: what --no-crc says
  ignore,  // none is: for fuzzers, which could not get past them
};

struct TorchZipOptions {
  Limits limits;
  CrcPolicy crc = CrcPolicy::verify;
  bool lenient = false;  // accept plain zips without ZIP64 records
  std::vector<std::string> allow;            // globals, "module.name"
  std::vector<std::string> allow_locations;  // storage tags beside cpu, cuda:N, meta, ...
};

// Everything a byte-identical re-save needs, and the object graph.
struct TorchZip {
  std::shared_ptr<const MappedFile> file;
  std::string prefix;  // "archive", "toy_int8"
  std::vector<ZipRecord> records;  // in file order
  uint32_t storage_alignment_bytes = 64;
  bool big_endian = false;
  pickle::Ref root;
  std::vector<std::shared_ptr<const Storage>> storages;  // by first appearance in the pickle; big-endian ones already swapped
  std::vector<std::optional<DType>> storage_dtypes;      // beside `storages`; nullopt: only used as UntypedStorage
  std::unordered_map<std::string, size_t> storage_index;  // key -> index into `storages`
  Limits limits;                                          // that it was read with
};

TorchZip read_torch_zip(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options = {});

// The tensor that a node spells (_rebuild_tensor_v2, _v3, _rebuild_parameter); nullopt when the node is no plain tensor.
// Refuses what contradicts its storage. Storages are shared: two views of data/0 have one Storage.
std::optional<Tensor> tensor_of(const TorchZip& zip, const pickle::Ref& node);

// The inverse, for writing: nodes for a plain tensor as torch.save 2.13 spells it. `storage_key` is "0", "1", ...
pickle::Ref tensor_node(const Tensor& tensor, const std::string& storage_key, bool requires_grad = false);

// What a rebuilt file took over from its source because the writer's model does not explain it. All false for what torch.save wrote
// with libstdc++.
struct RebuildNotes {
  bool kept_pickle = false;            // data.pkl: same graph, another pickler's spelling
  bool kept_serialization_id = false;  // the recorded id is not the one that libstdc++ would give
  bool kept_file = false;              // headers, padding or end records: nothing was edited, and the container is another writer's
};

// The file rebuilt from the parsed records and graph (the pickle is written anew, not copied). Equal to the input byte for byte
// for every file that torch.save wrote, and, by way of RebuildNotes, for every unedited file that was accepted.
std::vector<std::byte> rebuild_torch_zip(const TorchZip& zip, RebuildNotes* notes = nullptr);

// A new archive as torch.save 2.13 lays it out, prefix `prefix`. `storages[i]` becomes data/i.
std::vector<std::byte> write_torch_zip(const std::string& prefix, const pickle::Ref& root,
                                       const std::vector<std::shared_ptr<const Storage>>& storages);

}  // namespace qcts
