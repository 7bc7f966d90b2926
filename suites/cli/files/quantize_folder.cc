// SPDX-License-Identifier: BSD-3-Clause
// Writes a quantized model as a folder, as save_pretrained of transformers 5.24.0 does.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <unistd.h>

#include "reference/dialects/dialects.h"
#include "reference/dialects/directory/directory_files.h"
#include "reference/dialects/encoders/torchao_config.h"
#include "reference/dialects/names/model_names.h"
#include "reference/formats/refusal.h"
#include "suites/cli/files/model_config.h"
#include "suites/cli/files/quantize.h"
#include "suites/cli/files/weight_files.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using SortedJson = nlohmann::json;  // as json.dumps(sort_keys=True)
using Config = nlohmann::ordered_json;

std::string module_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

// The layers that transformers leaves float.

// The heads that get_keys_to_not_convert (transformers 5.24.0, quantizers/base.py) leaves out, by the names
// that its models give them: the output embedding, and a last layer without a bias.
constexpr std::string_view kHeads[] = {"lm_head.weight", "embed_out.weight", "score.weight"};
// Models whose layers of these names are Conv1D, which has no torchao class.
constexpr std::string_view kConv1dModels[] = {"gpt2", "openai-gpt", "imagegpt", "decision_transformer"};
constexpr std::string_view kConv1dLayers[] = {"c_attn", "c_proj", "c_fc", "q_attn"};

std::string kept_float(const std::string& name, std::string_view model_type, bool has_experts) {
  const std::string module = module_of(name), layer = module.substr(module.rfind('.') + 1);
  if (std::ranges::find(kHeads, name) != std::end(kHeads))
    return "transformers leaves it float unless it is named";
  if (std::ranges::find(kConv1dModels, model_type) != std::end(kConv1dModels) &&
      std::ranges::find(kConv1dLayers, layer) != std::end(kConv1dLayers))
    return "a Conv1D, but transformers quantizes only Linear layers";
  if (has_experts && name.find(".experts.") != name.npos)
    return "an expert, which transformers joins with others into one 3-D parameter";
  if (has_experts && (layer == "gate" || layer == "router"))
    return "a router, which is not a Linear layer in transformers";
  return "";
}

// The names in memory of the tensors of a folder.
class FolderNames {
 public:
  explicit FolderNames(const Checkpoint& checkpoint) {
    std::vector<std::string> on_disk;
    for (const NamedTensor& tensor : checkpoint.tensors) on_disk.push_back(tensor.name);
    std::vector<MemoryNames> found = memory_names(checkpoint.config, on_disk);
    for (size_t i = 0; i < on_disk.size(); ++i) names_.emplace(on_disk[i], std::move(found[i]));
  }
  const MemoryNames& of(const std::string& on_disk) const { return names_.at(on_disk); }
  const std::string& name(const std::string& on_disk) const { return of(on_disk).names[0]; }

 private:
  std::map<std::string, MemoryNames> names_;
};

// The entries of config.json.

// The modules that stay float among those that would be quantized; null when they are transformers' own
// choice.
SortedJson not_converted(const Checkpoint& checkpoint, const std::vector<QuantizeDecision>& decisions) {
  QuantizeRules usual;
  keep_as_transformers(checkpoint, usual);
  const LinearLayers layers(checkpoint);
  const FolderNames names(checkpoint);
  bool as_usual = true;
  SortedJson modules = SortedJson::array();
  for (const QuantizeDecision& decision : decisions) {
    const std::string& name = decision.tensor->name;
    const bool done = decision.reason.empty(), candidate = is_candidate(*decision.tensor, layers);
    if (candidate || done) as_usual = as_usual && done == (candidate && !usual.kept.contains(name));
    if (candidate && !done) modules.push_back(module_of(names.name(name)));
  }
  if (as_usual) return nullptr;
  if (checkpoint.config.value("tie_word_embeddings", Config()) == Config(true)) modules.push_back("lm_head");
  return modules;
}

// The quantization_config of --like, if it is for the same recipe.
SortedJson config_of_like(const QuantizeArguments& words, const SortedJson& computed) {
  const fs::path path = fs::path(words.like) / "config.json";
  if (words.like.empty() || !fs::exists(path)) return nullptr;
  const SortedJson said = read_json_file(path).value("quantization_config", SortedJson());
  const bool same = said.is_object() && said.value("quant_type", SortedJson()) == computed["quant_type"];
  return same || words.as_like ? said : SortedJson();
}

SortedJson config_to_write(const QuantizeArguments& words, const QuantizePlan& plan,
                           const Checkpoint& checkpoint, const std::vector<QuantizeDecision>& decisions) {
  const SortedJson computed =
      quantization_config(*torchao_config(*plan.cls, *plan.scheme, plan.layout, plan.activation),
                          not_converted(checkpoint, decisions));
  const SortedJson copied = config_of_like(words, computed);
  return copied.is_object() ? copied : computed;
}

// Weight files.

std::vector<WeightItem> pickled_items(const std::vector<OutputTensor>& tensors) {
  std::vector<WeightItem> items;
  for (const OutputTensor& tensor : tensors) {
    uint64_t bytes = tensor.plain ? bytes_of(tensor.plain->dtype, tensor.plain->shape) : 0;
    if (tensor.quantized)
      for (const Planes* planes : {&tensor.quantized->planes, &tensor.quantized->policy_planes})
        for (const Plane& plane : *planes) bytes += plane.bytes.size();
    items.push_back({tensor.name, tensor.name, bytes});
  }
  return items;
}

// Every tensor into the file with the number of its file in IN.
Shards cut_as_input(const std::vector<WeightItem>& items, const Checkpoint& checkpoint) {
  std::vector<std::string> ignored;
  const std::vector<Shard> files = find_shards(checkpoint.path, ignored);
  std::map<std::string_view, size_t> homes;
  for (size_t i = 0; i < files.size(); ++i) {
    for (const std::string& name : files[i].expected) homes.emplace(name, i);
    if (i < checkpoint.safetensors.size())
      for (const SafetensorsEntry& entry : checkpoint.safetensors[i]->entries) homes.emplace(entry.name, i);
  }
  Shards shards(files.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const auto home = homes.find(items[i].owner);
    shards[home == homes.end() ? 0 : home->second].push_back(i);
  }
  std::erase_if(shards, [](const std::vector<size_t>& shard) { return shard.empty(); });
  return shards;
}

std::string index_file(const Checkpoint& checkpoint, const std::vector<WeightItem>& items,
                       const Shards& shards, bool safetensors) {
  int64_t parameters = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) parameters += numel_of(tensor.shape);
  uint64_t bytes = 0;
  SortedJson map = SortedJson::object();
  for (size_t i = 0; i < shards.size(); ++i)
    for (const size_t item : shards[i]) {
      bytes += items[item].bytes;
      map[items[item].key] = weight_file(i, shards.size(), safetensors);
    }
  return json_file(SortedJson{{"metadata", {{"total_parameters", parameters}, {"total_size", bytes}}},
                              {"weight_map", std::move(map)}});
}

// A file of safetensors does not keep the order of a model's modules, in which transformers lists them; a
// quantized one lists them in its metadata.
std::vector<OutputTensor> in_order_of(const std::string& like, std::vector<OutputTensor> tensors) {
  if (like.empty()) return tensors;
  std::map<std::string, size_t> places;
  for (const NamedTensor& tensor : open_checkpoint(like).tensors) places.emplace(tensor.name, places.size());
  std::ranges::stable_sort(tensors, {}, [&](const OutputTensor& tensor) {
    const auto found = places.find(tensor.name);
    return found == places.end() ? places.size() : found->second;
  });
  return tensors;
}

void write_weights(const QuantizeArguments& words, const QuantizePlan& plan, const Checkpoint& checkpoint,
                   const Quantized& replaced, const fs::path& folder) {
  std::vector<OutputTensor> tensors = in_order_of(words.like, output_tensors(checkpoint, replaced));
  const FolderNames names(checkpoint);
  for (OutputTensor& tensor : tensors) tensor.in_memory = names.of(tensor.name).names;
  EncodedSafetensors encoded;
  std::vector<WeightItem> items;
  if (plan.safetensors) {
    encoded = encode_safetensors(tensors);
    encoded.metadata.emplace_back("format", "pt");
    for (size_t i = 0; i < encoded.entries.size(); ++i) {
      const auto& [key, part] = encoded.entries[i];
      items.push_back({key, encoded.owners[i], bytes_of(part.dtype, part.shape)});
    }
  } else {
    items = pickled_items(tensors);
  }
  const Shards shards = words.max_shard_size.empty()
                            ? cut_as_input(items, checkpoint)
                            : cut_by_size(items, size_of_words(words.max_shard_size));
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = weight_file(i, shards.size(), plan.safetensors);
    save_file(folder / name, [&](ByteSink& out) {
      if (plan.safetensors) {
        std::vector<std::pair<std::string, Tensor>> entries;
        for (const size_t item : shards[i]) entries.push_back(encoded.entries[item]);
        return write_safetensors(entries, encoded.metadata, out);
      }
      std::vector<OutputTensor> held;
      for (const size_t item : shards[i]) held.push_back(tensors[item]);
      const EditedZip zip = encode_state_dict(held);
      write_torch_zip(fs::path(name).stem().string(), zip.root, zip.storages, out);
    });
  }
  if (shards.size() > 1)
    save_file(folder / (weight_file(0, 1, plan.safetensors) + ".index.json"),
              bytes_of_text(index_file(checkpoint, items, shards, plan.safetensors)));
}

// The folder.

// Copies the files next to config.json and the weights, such as the tokenizer's. Links must stay in the
// folder.
std::vector<std::string> copy_others(const fs::path& from, const fs::path& to) {
  std::vector<std::string> notes;
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) names.insert(entry.path().filename());
  for (const std::string& name : names) {
    if (name == "config.json" || name.starts_with('.') || names_weights(name)) continue;
    const fs::path source = shard_path(from, name);
    if (fs::is_regular_file(source))
      fs::copy_file(source, to / name);
    else
      notes.push_back(name + " is not a file and is not copied");
  }
  return notes;
}

fs::path folder_of(const std::string& out) {
  const fs::path path = fs::path(out).lexically_normal();
  return path.filename().empty() ? path.parent_path() : path;
}

// Moves what is complete to OUT; an old folder goes only when the new one is in its place.
void move_to(const fs::path& partial, const fs::path& out) {
  if (!fs::exists(out) || fs::is_empty(out)) return fs::rename(partial, out);
  const fs::path old = partial.string() + ".old";
  fs::rename(out, old);
  try {
    fs::rename(partial, out);
  } catch (const fs::filesystem_error&) {
    fs::rename(old, out);
    throw;
  }
  fs::remove_all(old);
}

}  // namespace

void keep_as_transformers(const Checkpoint& checkpoint, QuantizeRules& rules) {
  const Config type = checkpoint.config.value("model_type", Config());
  const std::string model = type.is_string() ? type.get<std::string>() : "";
  const bool has_experts = std::ranges::any_of(checkpoint.tensors, [](const NamedTensor& tensor) {
    return tensor.name.find(".experts.") != tensor.name.npos;
  });
  const LinearLayers layers(checkpoint);
  const FolderNames names(checkpoint);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (!is_candidate(tensor, layers)) continue;
    std::string why = kept_float(names.name(tensor.name), model, has_experts);
    if (why.empty() && names.of(tensor.name).is_converted)
      why = "a part of another tensor in transformers' memory";
    if (!why.empty()) rules.kept.emplace(tensor.name, std::move(why));
  }
}

void require_folder(const QuantizeArguments& words, const QuantizePlan& plan, const Checkpoint& checkpoint) {
  const fs::path out = folder_of(words.out);
  if (checkpoint.format != Format::directory || !checkpoint.config.is_object())
    throw UsageError("OUT '" + words.out +
                     "' is a folder, so IN must be one with config.json: give OUT an ending" +
                     " (.pt, .pth, .bin or .safetensors)");
  if (!plan.cls || !torchao_config(*plan.cls, *plan.scheme, plan.layout, plan.activation))
    throw UsageError("transformers has no configuration for " + words.scheme + " in the layout '" +
                     std::string(plan.layout.name()) + "' under the policy '" + words.activation +
                     "': give OUT an ending (.pt, .pth, .bin or .safetensors)");
  if (!words.max_shard_size.empty()) size_of_words(words.max_shard_size);
  require_only_tensors(checkpoint);
  if (!fs::exists(out)) return;
  if (fs::equivalent(out, checkpoint.path)) throw UsageError("OUT '" + words.out + "' is IN");
  if (!fs::is_directory(out)) throw UsageError("OUT '" + words.out + "' is a file, not a folder");
  if (fs::is_empty(out)) return;
  if (!words.overwrite)
    throw UsageError("OUT '" + words.out + "' is not empty: choose another folder, or add --overwrite");
  if (!fs::exists(out / "config.json"))
    throw UsageError("OUT '" + words.out + "' has no config.json: --overwrite replaces only a model folder");
  if (const fs::path inside = fs::canonical(checkpoint.path).lexically_relative(fs::canonical(out));
      *inside.begin() != "..")
    throw UsageError("OUT '" + words.out + "' holds IN");
}

std::vector<std::string> write_folder(const QuantizeArguments& words, const QuantizePlan& plan,
                                      const Checkpoint& checkpoint,
                                      const std::vector<QuantizeDecision>& decisions,
                                      const Quantized& replaced) {
  const fs::path out = folder_of(words.out);
  const fs::path partial =
      out.parent_path() / ("." + out.filename().string() + "." + std::to_string(getpid()) + ".part");
  std::error_code ignored;
  std::vector<std::string> notes;
  try {
    fs::create_directory(partial);
    write_weights(words, plan, checkpoint, replaced, partial);
    const SortedJson quantization = config_to_write(words, plan, checkpoint, decisions);
    save_file(partial / "config.json",
              bytes_of_text(json_file(with_quantization(checkpoint.config, quantization))));
    notes = copy_others(checkpoint.path, partial);
    move_to(partial, out);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(partial, ignored);
    throw WriteFailure(error.what());
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
  return notes;
}

}  // namespace qcts::cli
