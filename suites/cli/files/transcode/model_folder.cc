// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/transcode/model_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "reference/comparison/content.h"
#include "reference/dialects/dialects.h"
#include "suites/base/run_error.h"
#include "suites/cli/files/convert.h"
#include "suites/cli/files/model_config.h"
#include "suites/cli/files/weight_files.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kPipelineStem = "diffusion_pytorch_model";

// The weight files of IN, by the storages that they hold.
class StorageHomes {
 public:
  explicit StorageHomes(const Checkpoint& checkpoint) {
    for (const auto& file : checkpoint.safetensors) {
      for (const SafetensorsEntry& entry : file->entries) homes_.emplace(entry.tensor.storage.get(), count_);
      ++count_;
    }
    for (const auto& file : checkpoint.zips) add(*file);
    for (const auto& file : checkpoint.legacies) add(*file);
  }
  size_t count() const { return std::max<size_t>(1, count_); }
  size_t home_of(const NamedTensor& tensor) const {
    if (tensor.payload.empty()) return 0;
    const auto found = homes_.find(tensor.payload[0].tensor.storage.get());
    return found == homes_.end() ? 0 : found->second;
  }

 private:
  void add(const TorchObject& object) {
    for (const auto& storage : object.storages) homes_.emplace(storage.get(), count_);
    ++count_;
  }
  std::unordered_map<const Storage*, size_t> homes_;
  size_t count_ = 0;
};

bool is_pipeline(const Checkpoint& checkpoint) {
  return !checkpoint.safetensors.empty() &&
         fs::path(checkpoint.safetensors[0]->file->path()).filename().string().starts_with(kPipelineStem);
}

std::string shard_name(const Checkpoint& checkpoint, size_t index, size_t count) {
  const std::string name = weight_file(index, count, true);
  return is_pipeline(checkpoint) ? std::string(kPipelineStem) + name.substr(name.find_first_of("-.")) : name;
}

Json read_if_there(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.format == Format::directory ? read_json_file(checkpoint.path / name) : Json();
}

// Writes the index of several shards, with what IN's index says in addition to the sizes.
void write_shard_index(const Json& former, const std::map<std::string, std::string>& places, uint64_t bytes,
                       const fs::path& path) {
  Json json = former.is_object() ? former : Json::object();
  if (!json.contains("metadata") || !json["metadata"].is_object()) json["metadata"] = Json::object();
  json["metadata"]["total_size"] = bytes;
  json["weight_map"] = places;
  save_file(path, bytes_of_text(json_file(json)));
}

bool says_quantization(const std::string& name) {
  return name == "quantize_config.json" || name == "quant_config.json" || name == "hf_quant_config.json";
}

}  // namespace

std::vector<std::vector<size_t>> tensors_by_file(const Checkpoint& checkpoint) {
  const StorageHomes homes(checkpoint);
  std::vector<std::vector<size_t>> files(homes.count());
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i)
    files[homes.home_of(checkpoint.tensors[i])].push_back(i);
  std::erase_if(files, [](const std::vector<size_t>& file) { return file.empty(); });
  return files;
}

Json without_quantization(const Json& config) {
  if (!config.is_object()) return config;
  Json kept = Json::object();
  for (const auto& [key, value] : config.items()) {
    const bool mlx = key == "quantization" && value.is_object() && value.contains("bits");
    if (mlx || key == "quantization_config" || key == "compression_config") continue;
    kept[key] = key.ends_with("_config") ? without_quantization(value) : value;
  }
  return kept;
}

void write_model_folder(const Checkpoint& checkpoint, const Json& config, const EncodeTensors& encode,
                        const fs::path& folder) {
  std::set<std::string> left_out, written;
  Json index;
  for (const BesideFile& file : files_beside(checkpoint)) {
    const bool is_index = file.name.ends_with(".index.json");
    if (is_index) index = read_if_there(checkpoint, file.name);
    if (is_index || says_quantization(file.name) || file.name == "config.json") left_out.insert(file.name);
  }
  fs::create_directory(folder);
  const std::vector<std::vector<size_t>> shards = tensors_by_file(checkpoint);
  std::map<std::string, std::string> places;
  uint64_t bytes = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const EncodedSafetensors encoded = encode(shards[i]);
    const std::string name = shard_name(checkpoint, i, shards.size());
    for (const auto& [key, tensor] : encoded.entries) {
      if (!places.emplace(key, name).second)
        throw Failure(key + ": two tensors would be written to this entry");
      bytes += bytes_of(tensor.dtype, tensor.shape);
    }
    save_file(folder / name,
              [&](ByteSink& sink) { write_safetensors(encoded.entries, encoded.metadata, sink); });
    written.insert(name);
  }
  if (shards.size() > 1) {
    const std::string name = shard_name(checkpoint, 0, 1) + ".index.json";
    write_shard_index(index, places, bytes, folder / name);
    written.insert(name);
  }
  if (!config.is_null()) {
    save_file(folder / "config.json", bytes_of_text(json_file(config)));
    written.insert("config.json");
  }
  copy_beside(checkpoint, folder, left_out, written);
}

}  // namespace qcts::cli
