// SPDX-License-Identifier: BSD-3-Clause
// A checkpoint as named quantized tensors, for inspect, diff and the judge.
// A dialect is the form in which one producer encodes quantized tensors.
// The reader detects the dialect by class or metadata, then by key pattern.
// A file that fits two dialects is refused, and the refusal names both.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/classes/named_tensor.h"
#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/formats/gguf/gguf.h"
#include "reference/formats/safetensors/safetensors.h"
#include "reference/formats/tensor.h"
#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/zip.h"
#include "reference/formats/torchscript/torchscript.h"
#include "reference/schemes/scheme.h"

namespace qcts {

enum class Format : uint8_t { torch_zip, torch_legacy, safetensors, directory, torchscript, gguf };
std::string_view format_name(Format format);
// "plain", "torchao_v1", "torchao_v2", "torchao_safetensors", "torchao_2338", "tinyq"
std::span<const std::string_view> dialect_names();

// A fault of a checkpoint that can still be read.
struct CheckpointFinding {
  enum class Kind : uint8_t {
    foreign,        // quantized in a format that qcts recognizes but cannot read
    contradiction,  // tensors contradict each other or config.json
  };
  Kind kind = Kind::contradiction;
  std::string tensor;  // empty: the whole checkpoint
  std::string text;
};

// A name that the writer listed and did not store, such as a tied weight's.
struct NotStored {
  std::string name;     // in memory
  std::string missing;  // which part of the tensor is missing, if other parts are there: "NAME is missing"
};

struct Checkpoint {
  Format format = Format::torch_zip;
  std::string dialect;  // one of dialect_names(), "gguf", or a ForeignFormat's name
  std::filesystem::path path;
  uint64_t file_bytes = 0;
  std::vector<NamedTensor> tensors;  // in file order; names are unique
  std::vector<std::string> warnings;
  std::vector<CheckpointFinding> findings;
  std::vector<NotStored> left_out;
  // The containers that were read, for resave and edits: one for a file, one per shard for a directory.
  std::vector<std::shared_ptr<const TorchZip>> zips;
  std::vector<std::shared_ptr<const TorchLegacy>> legacies;
  std::vector<std::shared_ptr<const Safetensors>> safetensors;
  std::vector<std::shared_ptr<const Gguf>> ggufs;
  std::shared_ptr<const TorchScript> script;  // set for TorchScript archives, which are never written
  nlohmann::ordered_json config;              // config.json of a directory; null otherwise
};

struct OpenOptions {
  Limits limits;
  CrcPolicy crc = CrcPolicy::verify;
  bool lenient = false;
  bool config_is_a_plan = false;             // config.json may describe how to quantize float tensors
  std::string dialect;                       // empty: detect the dialect
  std::filesystem::path config;              // the config.json of a file; empty: the one next to it
  std::vector<std::string> allow;            // globals to keep as opaque objects
  std::vector<std::string> allow_locations;  // storage tags to allow in addition to torch's
  std::vector<std::pair<std::string, std::string>> map_locations;  // as TorchOptions::map_locations
};

// Opens a file, or a directory with config.json and shards.
// Throws Refused, IoError, or std::invalid_argument for an unknown dialect.
Checkpoint open_checkpoint(const std::filesystem::path& path, const OpenOptions& options = {});
// Reads a checkpoint from a mapped file, as tests, fuzzers and the cases of kind reject do.
Checkpoint read_checkpoint(std::shared_ptr<const MappedFile> file, const OpenOptions& options = {});

// Gives back the pages of a checkpoint's files (MappedFile::release_pages), once per 64 MiB read
// from them.
class PageRelease {
 public:
  explicit PageRelease(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  // The tensor was read, and its bytes are no longer looked at.
  void was_read(const NamedTensor& tensor);
  void was_read(const Tensor& tensor);

 private:
  void release_if_many();

  const Checkpoint& checkpoint_;
  uint64_t bytes_ = 0;
};

// Returns the bytes of all payload storages. A storage that several tensors share counts once.
uint64_t payload_bytes(const Checkpoint& checkpoint);
// Returns the bytes of the dense model: each tensor's shape in its logical dtype. Tied tensors count once.
uint64_t dense_bytes(const Checkpoint& checkpoint);

}  // namespace qcts
