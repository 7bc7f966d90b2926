// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>

#include "reference/dialects/config.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/directory/directory_files.h"
#include "reference/dialects/foreign/foreign.h"
#include "reference/dialects/joins/join.h"
#include "reference/dialects/names/model_names.h"
#include "reference/formats/refusal.h"
#include "reference/numerics/soft_float.h"

namespace qcts {

#define QCTS_JOIN(name) extern const Join kJoin_##name;
#include "reference/dialects/joins/joins.inc"
#undef QCTS_JOIN

namespace {

#define QCTS_JOIN(name) &kJoin_##name,
const Join* const kJoins[] = {
#include "reference/dialects/joins/joins.inc"
};
#undef QCTS_JOIN

const Join* join_of(const std::string& method) {
  const ForeignFormat* format = foreign_by_method(method);
  for (const Join* join : kJoins)
    if (format != nullptr && join->format == format->name) return join;
  return nullptr;
}

// Without a configuration, the names of a format's own parts decide.
const Join* join_by_names(const Checkpoint& checkpoint) {
  for (const Join* join : kJoins)
    for (const NamedTensor& tensor : checkpoint.tensors)
      if (!join->sign.empty() && tensor.name.find(join->sign) != std::string::npos) return join;
  return nullptr;
}

bool is_lone_data(const NamedTensor& tensor) {
  return (tensor.type == "Tensor" || tensor.type == "Parameter") && tensor.payload.size() == 1 &&
         tensor.payload[0].name == "data" && tensor.payload[0].tensor.storage != nullptr;
}

class Joiner {
 public:
  Joiner(Checkpoint& checkpoint, const Join& join, const QuantConfig& config, ReadBudget& budget)
      : checkpoint_(checkpoint), join_(join), config_(config), budget_(budget) {}

  // Returns why the first weight that is left apart is not read.
  std::string run() {
    if (const std::string why = join_.refuse(config_.said); !why.empty()) return why;
    budget_.take_bytes(kPlaceBytes * checkpoint_.tensors.size());
    for (size_t i = 0; i < checkpoint_.tensors.size(); ++i)
      if (is_lone_data(checkpoint_.tensors[i])) places_.emplace(checkpoint_.tensors[i].name, i);
    left_out_ = words_left_out(config_.said);
    std::vector<ModuleWord> words = left_out_;
    if (join_.module_words != nullptr)
      std::ranges::move(join_.module_words(config_.said), std::back_inserter(words));
    if (!words.empty()) named_ = NamedModules(std::move(words), places_, modules_in_memory());
    taken_.resize(checkpoint_.tensors.size());
    for (const auto& [name, place] : places_) try_codes(std::string(name), place);
    report_floats();
    if (!layers_.empty()) {
      if (is_whole_)
        for (const std::string& text : named_.findings())
          checkpoint_.findings.push_back({CheckpointFinding::Kind::contradiction, "", text});
      replace();
    }
    return why_not_;
  }

 private:
  static constexpr uint64_t kPlaceBytes = 2 * (sizeof(NamedTensor) + 160);

  // A configuration may call modules as transformers does, which stores some under other names.
  ModulesInMemory modules_in_memory() const {
    std::vector<std::string> on_disk;
    for (const auto& [name, place] : places_) on_disk.emplace_back(name);
    const std::vector<MemoryNames> names = memory_names(checkpoint_.config, on_disk);
    ModulesInMemory found;
    for (size_t i = 0; i < names.size(); ++i)
      for (const std::string& name : names[i].names)
        if (name != on_disk[i])
          found.try_emplace(unwrapped_name(module_of_tensor(name)),
                            unwrapped_name(module_of_tensor(on_disk[i])));
    return found;
  }

  void try_codes(const std::string& name, size_t place) {
    if (checkpoint_.tensors[place].payload[0].tensor.numel() == 0) return;
    for (std::string_view ending : join_.codes) {
      const bool lone = ending.starts_with('.') && name == ending.substr(1);
      if (!lone && !name.ends_with(ending)) continue;
      const std::string stem = lone ? "" : name.substr(0, name.size() - ending.size());
      LayerParts parts(stem, ending, places_, checkpoint_.tensors, named_, is_whole_);
      try {
        if (std::optional<CodedWeight> coded = join_.read(parts, config_)) {
          require_converted(stem.empty() ? name : parts.module());
          if (!is_whole_ && named_.behind_prefix(parts.module()))
            leave_apart("config.json may mean it by " + parts.words()[0] +
                        ", which only the other shards show");
          add(name, place, parts, std::move(*coded));
        }
      } catch (const NotJoined& why) {
        note(name, why);
      }
      return;
    }
  }

  // The names of modules that stay as they are. Patterns are the formats' own.
  static std::vector<ModuleWord> words_left_out(const nlohmann::ordered_json& said) {
    std::vector<ModuleWord> words;
    for (const char* key :
         {"modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "ignore", "exclude_modules"}) {
      const auto listed = said.is_object() ? said.find(key) : said.end();
      if (listed == said.end() || !listed->is_array()) continue;
      for (const auto& word : *listed)
        if (word.is_string() && word.get_ref<const std::string&>().find_first_of("*?:[") == std::string::npos)
          words.push_back({.word = word, .said_by = key, .required = false});
    }
    return words;
  }

  // transformers finds a word of its own lists anywhere in the name of a module; such lists name no pattern.
  void require_converted(const std::string& module) const {
    const std::vector<std::string>& named = named_.words_of(module);
    for (const ModuleWord& left_out : left_out_)
      if (std::ranges::find(named, left_out.word) != named.end() ||
          (left_out.said_by != "ignore" && left_out.said_by != "exclude_modules" &&
           names_module(left_out.word, module)))
        contradict_layer("config.json does not convert " + left_out.word + ", but it holds codes");
  }

  bool has_other_codes(const std::string& module) const {
    return std::ranges::any_of(join_.codes, [&](std::string_view ending) {
      return ending != ".weight" && places_.contains(module + std::string(ending));
    });
  }

  // A reader of the format finds no codes in a module that config.json calls quantized.
  void report_floats() {
    for (const auto& [module, said] : named_.required()) {
      if (has_other_codes(module)) continue;
      const std::string weight = module + ".weight";
      const auto found = places_.find(weight);
      if (found == places_.end() || taken_[found->second]) continue;
      const DType dtype = checkpoint_.tensors[found->second].dtype;
      if (is_float(dtype) && dtype_bits(dtype) > 8)  // float8 are codes, which a join has judged
        note(weight,
             NotJoined(NotJoined::Cause::contradiction,
                       "config.json says " + said + " of it, but it is " + std::string(dtype_name(dtype))));
    }
  }

  void note(const std::string& name, const NotJoined& why) {
    if (why.cause() == NotJoined::Cause::contradiction)
      checkpoint_.findings.push_back(
          {CheckpointFinding::Kind::contradiction, name, name + ": " + why.what()});
    if (why_not_.empty()) why_not_ = why.what();
  }

  void add(const std::string& codes, size_t place, const LayerParts& parts, CodedWeight coded) {
    NamedTensor layer;
    layer.name = join_.keeps_name ? codes
                 : parts.stem().empty() && join_.weight.starts_with('.')
                     ? std::string(join_.weight.substr(1))
                     : parts.stem() + std::string(join_.weight);
    if (layer.name != codes && places_.contains(layer.name))
      refuse(RefusalClass::DuplicateEntry, layer.name + " beside " + codes + ": two weights of one module");
    layer.type = std::string(join_.format);
    layer.dtype = coded.dtype;
    layer.shape = {coded.rows, coded.columns};
    if (coded.experts > 1 || coded.transposed) {
      layer.shape = {coded.experts, coded.rows / coded.experts, coded.columns};
      if (coded.transposed) std::swap(layer.shape[1], layer.shape[2]);
    }
    if (!coded.shape.empty()) layer.shape = coded.shape;
    for (const auto& [index, inner] : parts.used()) {
      if (taken_[index])
        refuse(RefusalClass::SubclassSchema, checkpoint_.tensors[index].name + " belongs to two weights");
      taken_[index] = true;
      layer.payload.push_back({inner, checkpoint_.tensors[index].payload[0].tensor});
    }
    layer.coded = std::make_shared<const CodedWeight>(std::move(coded));
    budget_.take_bytes(sizeof(CodedWeight) + heap_bytes_of(layer));
    layers_.emplace(place, std::move(layer));
  }

  // Puts each weight in the place of its codes.
  void replace() {
    std::vector<NamedTensor> joined;
    joined.reserve(checkpoint_.tensors.size());
    for (size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      if (const auto layer = layers_.find(i); layer != layers_.end())
        joined.push_back(std::move(layer->second));
      else if (!taken_[i])
        joined.push_back(std::move(checkpoint_.tensors[i]));
    }
    places_.clear();
    checkpoint_.tensors = std::move(joined);
    checkpoint_.dialect = std::string(join_.format);
  }

  Checkpoint& checkpoint_;
  const Join& join_;
  const QuantConfig& config_;
  ReadBudget& budget_;
  // A single shard lacks the modules that are in another shard.
  const bool is_whole_ =
      checkpoint_.format == Format::directory || !names_one_of_several(checkpoint_.path.filename().string());
  PlainPlaces places_;
  NamedModules named_{{}, places_};
  std::vector<ModuleWord> left_out_;
  std::vector<bool> taken_;
  std::map<size_t, NamedTensor> layers_;  // by the place of their codes
  std::string why_not_;
};

}  // namespace

bool is_joined(std::string_view format) {
  return std::ranges::any_of(kJoins, [&](const Join* join) { return join->format == format; });
}

std::string join_foreign_parts(Checkpoint& checkpoint, const QuantConfig& config, ReadBudget& budget) {
  if (!config.contradiction.empty())
    checkpoint.findings.push_back({CheckpointFinding::Kind::contradiction, "", config.contradiction});
  const Join* join = config.method.empty() ? join_by_names(checkpoint) : join_of(config.method);
  // bitsandbytes with load_in_4bit and load_in_8bit false, which its codes contradict.
  if (join == nullptr && config.method.empty()) join = join_of(json_text(config.said, "quant_method"));
  if (join == nullptr || checkpoint.dialect != "plain") return "";
  return Joiner(checkpoint, *join, config, budget).run();
}

}  // namespace qcts
