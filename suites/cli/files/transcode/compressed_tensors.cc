// SPDX-License-Identifier: BSD-3-Clause
// qcts convert --to compressed_tensors: a folder that compressed-tensors 0.20.0 decompresses.
#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>

#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/convert.h"
#include "reference/dialects/names/model_names.h"
#include "reference/dialects/own_metadata.h"
#include "reference/dialects/transcode/compressed_tensors.h"
#include "suites/cli/files/convert_today.h"
#include "suites/cli/files/model_config.h"
#include "suites/cli/files/transcode/model_folder.h"
#include "suites/cli/files/transcode/output.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kWeightEnding = ".weight";

// "model.fc" for "model.fc.weight".
std::string module_of(const NamedTensor& tensor) {
  if (!tensor.name.ends_with(kWeightEnding) || tensor.name.size() == kWeightEnding.size())
    throw Failure(tensor.name + ": compressed-tensors holds only weights of modules, named MODULE.weight");
  return tensor.name.substr(0, tensor.name.size() - kWeightEnding.size());
}

// The weights of IN in the form of compressed-tensors; nullptr for a tensor that stays as it is.
struct CompressedModel {
  std::deque<CompressedWeight> weights;
  std::vector<CompressedWeight*> by_index;
  std::map<std::string, CompressedWeight*> by_module;
};

// Adds the module, under its names in memory too where transformers renames it.
void add_module(const NamedTensor& tensor, const MemoryNames& in_memory, CompressedModel& model) {
  model.by_module.emplace(module_of(tensor), &model.weights.back());
  if (in_memory.is_converted) return;
  for (const std::string& name : in_memory.names)
    if (name.ends_with(kWeightEnding))
      model.by_module.emplace(name.substr(0, name.size() - kWeightEnding.size()), &model.weights.back());
}

CompressedModel compressed_model(const Checkpoint& checkpoint) {
  CompressedModel model;
  std::vector<std::string> on_disk;
  for (const NamedTensor& tensor : checkpoint.tensors) on_disk.push_back(tensor.name);
  const std::vector<MemoryNames> names = memory_names(checkpoint.config, on_disk);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    model.by_index.push_back(nullptr);
    if (is_plain(tensor)) continue;
    module_of(tensor);  // refuses other names
    const GridWeight grid = grid_of(tensor);
    try {
      model.weights.push_back(compressed_weight(grid));
    } catch (const std::invalid_argument& why) {
      throw Failure(tensor.name + ": " + why.what());
    }
    model.by_index.back() = &model.weights.back();
    add_module(tensor, names[model.by_index.size() - 1], model);
  }
  return model;
}

EncodedSafetensors encode_compressed(const Checkpoint& checkpoint, const CompressedModel& model,
                                     const std::vector<size_t>& indices) {
  std::vector<NamedTensor> tensors;
  for (const size_t i : indices) {
    const NamedTensor& tensor = checkpoint.tensors[i];
    if (model.by_index[i] == nullptr) {
      tensors.push_back(tensor);
      continue;
    }
    for (const auto& [ending, part] : model.by_index[i]->parts)
      tensors.push_back(plain_tensor(module_of(tensor) + "." + ending, part));
  }
  EncodedSafetensors encoded = encode_safetensors(tensors, "plain", false);
  std::map<std::string, std::string> metadata = own_metadata(checkpoint);
  metadata.try_emplace("format", "pt");
  encoded.metadata.assign(metadata.begin(), metadata.end());
  return encoded;
}

Json config_with(const Checkpoint& checkpoint, const CompressedModel& model) {
  const Json config = without_quantization(checkpoint.config);
  std::vector<std::string> floats = float_layers(checkpoint);
  std::erase_if(floats, [&](const std::string& module) { return model.by_module.contains(module); });
  return with_quantization(config.is_object() ? config : Json::object(),
                           compressed_config(model.by_module, floats));
}

void note_order(const CompressedModel& model) {
  const auto count =
      std::ranges::count_if(model.weights, [](const CompressedWeight& weight) { return weight.has_order; });
  if (count > 0)
    print_notes({"weight_g_idx of " + grouped(static_cast<uint64_t>(count)) +
                 " weights names the groups of their columns: compressed-tensors up to 0.12 reads it, and "
                 "0.20 refuses actorder \"group\""});
}

}  // namespace

int convert_to_compressed_tensors(const Checkpoint& checkpoint, const ConvertArguments& words) {
  if (fs::path(words.out).has_extension() && checkpoint.format != Format::directory)
    for (const char* ending : {".safetensors", ".pt", ".pth", ".bin"})
      if (words.out.ends_with(ending))
        throw UsageError("OUT '" + words.out +
                         "' must be a new folder: the recipes of compressed-tensors are in its config.json");
  require_new_folder(words.out);
  if (checkpoint.dialect == "compressed-tensors")
    throw UsageError(words.in + " is already in compressed-tensors format: qcts resave copies it");
  require_no_findings(checkpoint);
  require_names_and_tensors(checkpoint);
  require_no_input_parts(checkpoint, "compressed-tensors");
  if (const std::string said = said_about_input(checkpoint, words.options.open); !said.empty())
    throw Failure(words.in + ": " + said + " asks for quantized x, which OUT could not record");
  const CompressedModel model = compressed_model(checkpoint);
  if (model.weights.empty()) throw Failure(words.in + ": no tensor in it is quantized");
  const auto write = [&](const fs::path& path) {
    write_model_folder(
        checkpoint, config_with(checkpoint, model),
        [&](const std::vector<size_t>& indices) { return encode_compressed(checkpoint, model, indices); },
        path);
  };
  const ComparedWeights compared = write_compared(
      words, true, write, [&](const fs::path& path) { return compare_written(checkpoint, path, words); });
  note_order(model);
  note_further_attributes(checkpoint);
  report_conversion(words, checkpoint, "safetensors", "compressed-tensors", compared,
                    "as compressed-tensors, read back and equal in value");
  return 0;
}

}  // namespace qcts::cli
