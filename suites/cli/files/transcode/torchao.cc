// SPDX-License-Identifier: BSD-3-Clause
// qcts convert --to torchao: weights of other libraries in classes of torchao 0.18.0.
#include <map>
#include <stdexcept>

#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/convert.h"
#include "reference/dialects/names/model_names.h"
#include "reference/dialects/own_metadata.h"
#include "reference/dialects/transcode/torchao.h"
#include "suites/cli/files/convert_today.h"
#include "suites/cli/files/transcode/model_folder.h"
#include "suites/cli/files/transcode/output.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TodaysTensors torchao_tensors(const Checkpoint& checkpoint) {
  TodaysTensors made;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    made.by_index.push_back(nullptr);
    if (is_plain(tensor)) continue;
    const GridWeight grid = grid_of(tensor);
    try {
      made.by_index.back() = &made.made.emplace_back(torchao_weight(grid));
    } catch (const std::invalid_argument& why) {
      throw Failure(tensor.name + ": " + why.what());
    }
  }
  return made;
}

// The tensors of OUT as its reader finds them, with their names in memory.
std::vector<NamedTensor> tensors_of_out(const Checkpoint& checkpoint, const TodaysTensors& made,
                                        const ConvertArguments& words) {
  std::vector<NamedTensor> tensors = read_today(checkpoint, made, words.options.open);
  std::vector<std::string> on_disk;
  for (const NamedTensor& tensor : tensors) on_disk.push_back(tensor.name);
  const std::vector<MemoryNames> names = memory_names(checkpoint.config, on_disk);
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].in_memory = names[i].names;
  return tensors;
}

// Every shard has the metadata of all tensors, as transformers writes it.
std::vector<std::pair<std::string, std::string>> whole_metadata(const Checkpoint& checkpoint,
                                                                const std::vector<NamedTensor>& tensors) {
  const EncodedSafetensors whole = encode_safetensors(tensors, "torchao_safetensors", false);
  std::map<std::string, std::string> metadata(whole.metadata.begin(), whole.metadata.end());
  for (const auto& [key, value] : own_metadata(checkpoint))
    if (!metadata.try_emplace(key, value).second)
      throw Failure("__metadata__." + key + ": dialect torchao_safetensors uses this key itself");
  metadata.try_emplace("format", "pt");
  return {metadata.begin(), metadata.end()};
}

void write_folder(const Checkpoint& checkpoint, const TodaysTensors& made,
                  const std::vector<NamedTensor>& tensors, const fs::path& path) {
  const auto metadata = whole_metadata(checkpoint, tensors);
  Checkpoint stripped;  // whose config.json says nothing about the other library
  stripped.tensors = checkpoint.tensors;
  stripped.config = without_quantization(checkpoint.config);
  write_model_folder(
      checkpoint, todays_config(stripped, made),
      [&](const std::vector<size_t>& indices) {
        std::vector<NamedTensor> part;
        for (const size_t i : indices) part.push_back(tensors[i]);
        EncodedSafetensors encoded = encode_safetensors(part, "torchao_safetensors", false);
        encoded.metadata = metadata;
        return encoded;
      },
      path);
}

void write_one_file(const Checkpoint& checkpoint, const std::vector<NamedTensor>& tensors,
                    const std::string& out, const fs::path& path) {
  if (ends_as_safetensors(out)) {
    const EncodedSafetensors encoded = encode_safetensors(tensors, "torchao_safetensors", false);
    const auto metadata = whole_metadata(checkpoint, tensors);
    save_file(path, [&](ByteSink& sink) { write_safetensors(encoded.entries, metadata, sink); });
    return;
  }
  const EditedZip made = encode_state_dict(tensors, false);
  save_file(path,
            [&](ByteSink& sink) { write_torch_zip(archive_prefix(out), made.root, made.storages, sink); });
}

}  // namespace

int convert_to_torchao(const Checkpoint& checkpoint, const ConvertArguments& words) {
  const bool folder = checkpoint.format == Format::directory;
  if (folder)
    require_new_folder(words.out);
  else
    require_ending(words.out);
  const bool safetensors = folder || ends_as_safetensors(words.out);
  if (!safetensors && words.to == "torchao_safetensors")
    throw UsageError("dialect torchao_safetensors is not for pickles: give OUT another ending");
  require_no_findings(checkpoint);
  require_names_and_tensors(checkpoint);
  require_no_input_parts(checkpoint, "torchao");
  if (const std::string said = said_about_input(checkpoint, words.options.open); !said.empty())
    throw Failure(words.in + ": " + said + " asks for quantized x, which OUT could not record");
  const TodaysTensors made = torchao_tensors(checkpoint);
  const std::vector<NamedTensor> tensors = tensors_of_out(checkpoint, made, words);
  const auto write = [&](const fs::path& path) {
    if (folder) return write_folder(checkpoint, made, tensors, path);
    write_one_file(checkpoint, tensors, words.out, path);
  };
  const ComparedWeights compared = write_compared(
      words, folder, write, [&](const fs::path& path) { return compare_written(checkpoint, path, words); });
  note_further_attributes(checkpoint);
  report_conversion(words, checkpoint, safetensors ? "safetensors" : "torch_zip",
                    safetensors ? "torchao_safetensors" : "torchao_v2", compared,
                    "as torchao 0.18.0 classes, read back and equal in value");
  return 0;
}

}  // namespace qcts::cli
