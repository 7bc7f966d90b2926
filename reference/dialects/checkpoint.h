// A file in hand, as named quantized tensors: what inspect prints, what diff compares, what the judge judges.
// A dialect is how one producer spells them; detection is by class or metadata first, then by key pattern,
// and ambiguity is refused with both names.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/formats/safetensors.h"
#include "reference/formats/tensor.h"
#include "reference/formats/torch_legacy.h"
#include "reference/formats/torch_zip.h"
#include "reference/formats/torchscript.h"
#include "reference/schemes/scheme.h"

namespace qcts {

enum class Format : uint8_t { torch_zip, torch_legacy, safetensors, directory, torchscript };
std::string_view format_name(Format format);
// "plain", "torchao_v1", "torchao_v2", "torchao_safetensors", "torchao_2338", "tinyq"
std::span<const std::string_view> dialect_names();

struct InnerTensor {
  std::string name;  // dotted, depth-first in flatten order: "qdata", "tensor_impl.int_data"; "data" for a
                     // plain tensor
  Tensor tensor;
};

struct NamedTensor {
  std::string name;  // "linear1.weight"
  std::string type;  // the producer's class without module: "Int8Tensor", "AffineQuantizedTensor", "Tensor",
                     // "Parameter"
  std::string scheme;  // Scheme::name; empty when plain or unknown to the list
  std::string layout;  // "plain", "tile_packed_4d", "cpu_avx512" ...; empty when plain or when the file
                       // cannot tell (CPU packs)
  std::string activation{kWeightOnly};  // the policy that the file asks for, of the scheme's
  std::vector<int64_t> shape;           // of the tensor that the model sees
  DType dtype = DType::float32;         // its logical dtype
  std::vector<InnerTensor> payload;
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();  // reference/dialects/attributes.h
};

struct Checkpoint {
  Format format = Format::torch_zip;
  std::string dialect;  // one of dialect_names()
  std::filesystem::path path;
  uint64_t file_bytes = 0;
  std::vector<NamedTensor> tensors;  // file order; names unique
  std::vector<std::string> warnings;
  // What it was read from, for resave and for edits: exactly one for a file, one a shard for a directory.
  std::vector<std::shared_ptr<const TorchZip>> zips;
  std::vector<std::shared_ptr<const TorchLegacy>> legacies;
  std::vector<std::shared_ptr<const Safetensors>> safetensors;
  std::shared_ptr<const TorchScript> script;  // of a TorchScript archive, which is read and never written
  nlohmann::ordered_json config;              // config.json of a directory; null otherwise
};

struct OpenOptions {
  Limits limits;
  CrcPolicy crc = CrcPolicy::verify;
  bool lenient = false;
  bool config_is_a_plan = false;             // config.json may say what float tensors are to become
  std::string dialect;                       // empty: detect
  std::vector<std::string> allow;            // globals kept opaque
  std::vector<std::string> allow_locations;  // storage tags beside the ones that torch knows
};

// FILE, or a directory with config.json and shards. Throws Refused or IoError, std::invalid_argument for an
// unknown dialect.
Checkpoint open_checkpoint(const std::filesystem::path& path, const OpenOptions& options = {});
// The same from a mapped file (tests, fuzzers, the reject kind).
Checkpoint read_checkpoint(std::shared_ptr<const MappedFile> file, const OpenOptions& options = {});

// Bytes of all payload storages, a shared storage counted once (over the whole checkpoint).
uint64_t payload_bytes(const Checkpoint& checkpoint);
// Bytes of the dense model: every tensor's shape in its own logical dtype, tied ones once.
uint64_t dense_bytes(const Checkpoint& checkpoint);

// A quantized tensor in scheme terms: its planes in the layout of the file. A plane that an older torchao
// stored otherwise with the same meaning is converted: scales of Int8Tensor in the logical dtype become
// float32, an absent zero_point zeros (0.15).
struct SchemeTensor {
  const Scheme* scheme = nullptr;
  std::string layout;             // "plain", or the packing that the planes are in
  DType dtype = DType::bfloat16;  // logical
  int64_t n = 0, k = 0;           // of the logical weight [n, k]; of more dimensions, all but k are rows
  Planes planes;
  std::string activation{kWeightOnly};
  Planes policy_planes{};  // Scheme::policy_specs
  // Bytes that the file has beyond those planes (negative: fewer), where an older producer stored one in
  // another type.
  int64_t stored_otherwise_bytes = 0;
};

// nullopt for a plain tensor or an unknown scheme. Refuses SubclassSchema when the file cannot tell the
// layout and the hint is none of the scheme's. `layout_hint` names the CPU pack where the file cannot tell
// ("cpu_avx512", "cpu_avx2", "cpu_default").
std::optional<SchemeTensor> scheme_tensor(const NamedTensor& tensor, std::string_view layout_hint = "");

}  // namespace qcts
