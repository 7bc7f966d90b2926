// SPDX-License-Identifier: BSD-3-Clause
// From the words of the command line to a plan.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/torchao_config.h"
#include "suites/base/did_you_mean.h"
#include "suites/cli/files/first_recipes.h"
#include "suites/cli/files/quantize.h"

namespace qcts::cli {
namespace {

const Scheme& scheme_of(const std::string& word) {
  if (const Scheme* scheme = find_scheme(word)) return *scheme;
  std::vector<std::string> known;
  for (const Scheme* scheme : schemes()) known.emplace_back(scheme->name());
  throw UsageError("no scheme '" + word + "'" + did_you_mean(word, known));
}

// The layouts of a class of the dialect; the first is the default.
std::vector<std::string> writable_layouts(const Scheme& scheme, std::string_view dialect) {
  std::vector<std::string> names;
  for (const LayoutInfo& layout : scheme.layouts()) {
    const bool made = std::ranges::any_of(scheme.activations(), [&](const ActivationInfo& policy) {
      return torchao_class(scheme, layout, policy, dialect) != nullptr;
    });
    if (made || (scheme.family() == "tinyq" && dialect.empty())) names.emplace_back(layout.name);
  }
  const bool today = dialect.empty() || dialect == write_dialects().front();
  const std::string_view tiles = today ? "tile_packed_4d" : "tile_packed_4d_v1";
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == tiles || names[i] == "swizzled") std::swap(names[0], names[i]);
  return names;
}

// ": use --scheme int8_row_v1" where that scheme has a class for the policy.
std::string first_generation_of(const std::string& scheme, Policy activation) {
  const Scheme* first = find_scheme(scheme + "_v1");
  const auto policy = first ? first->find_activation(activation.name()) : std::nullopt;
  if (!policy || !torchao_class(*first, kPlain, *policy)) return "";
  return ": use --scheme " + std::string(first->name());
}

Policy policy_of_words(const Scheme& scheme, const std::string& word) {
  if (const std::optional<Policy> found = scheme.find_activation(word)) return *found;
  std::vector<std::string> known;
  for (const ActivationInfo& policy : scheme.activations()) known.emplace_back(policy.name);
  throw UsageError(std::string(scheme.name()) + " has no activation policy '" + word + "'" +
                   did_you_mean(word, known));
}

// Sets what OUT's ending says.
void choose_container(const QuantizeArguments& words, QuantizePlan& plan) {
  const std::filesystem::path out(words.out);
  const std::string ending = out.extension().string();
  const std::vector<std::string> endings = {".pt", ".pth", ".bin", ".safetensors"};
  // A folder may be called Llama-3.2-1B.
  const bool version = ending.size() > 1 && std::isdigit(static_cast<unsigned char>(ending[1]));
  plan.folder = out.has_relative_path() && (out.filename().empty() || ending.empty() || version);
  if (!plan.folder && std::ranges::find(endings, ending) == endings.end())
    throw UsageError("OUT '" + words.out +
                     "' must end in .pt, .pth, .bin or .safetensors, or in / for a folder" +
                     did_you_mean(ending, endings));
  plan.safetensors = ending == ".safetensors" || (plan.folder && plan.cls && plan.cls->in_safetensors);
  if (plan.safetensors && !plan.cls) throw UsageError("TinyQ cannot write safetensors: use .pth");
  if (plan.safetensors && !plan.cls->in_safetensors)
    throw UsageError("torchao cannot write " + std::string(plan.cls->name) + " (layout " +
                     std::string(plan.layout.name()) + ") to safetensors: use .pt");
  if (!plan.folder && (!words.max_shard_size.empty() || words.overwrite))
    throw UsageError("--max-shard-size and --overwrite are for a folder, but OUT is a file");
}

}  // namespace

QuantizePlan quantize_plan(const QuantizeArguments& words) {
  QuantizePlan plan;
  plan.scheme = &scheme_of(words.scheme);
  const std::vector<std::string> layouts = writable_layouts(*plan.scheme, words.dialect);
  const std::string layout = words.layout.empty() && !layouts.empty() ? layouts.front() : words.layout;
  plan.activation = policy_of_words(*plan.scheme, words.activation);
  plan.policy_planes = static_planes(*plan.scheme, plan.activation, words.scales);
  if (layouts.empty() && !words.dialect.empty())
    throw UsageError(words.dialect + " has no class for " + words.scheme +
                     first_generation_of(words.scheme, plan.activation));
  if (layouts.empty()) throw UsageError("qcts can read and judge " + words.scheme + ", but not write it");
  if (std::ranges::find(layouts, layout) == layouts.end())
    throw UsageError(words.scheme + " cannot be written in the layout '" + layout + "'" +
                     (words.dialect.empty() ? "" : " by " + words.dialect) + did_you_mean(layout, layouts));
  plan.layout = plan.scheme->layout_named(layout);
  plan.dialect = words.dialect;
  plan.cls = torchao_class(*plan.scheme, plan.layout, plan.activation, words.dialect);
  if (!plan.cls && plan.scheme->family() != "tinyq")
    throw UsageError(
        (words.dialect.empty() ? "no torchao class holds " : words.dialect + " has no class for ") +
        words.scheme + " in the layout '" + layout + "' under the policy '" + words.activation + "'" +
        first_generation_of(words.scheme, plan.activation));
  choose_container(words, plan);
  return plan;
}

namespace {

// The scheme whose configuration config.json holds; nullptr when there is none.
const Scheme* scheme_of_config(const Checkpoint& like, const NamedTensor& tensor) {
  const auto said = like.config.is_object() ? like.config.find("quantization_config") : like.config.end();
  if (said == like.config.end() || !said->is_object()) return nullptr;
  const nlohmann::json asked = said->value("quant_type", nlohmann::ordered_json());
  for (const Scheme* scheme : schemes()) {
    const auto layout = tensor.layout ? tensor.layout : scheme->find_layout("cpu_default");
    if (!layout || !scheme->find_layout(layout->name()) || !scheme->find_activation(tensor.activation.name()))
      continue;
    const TorchaoClass* cls = torchao_class(*scheme, *layout, tensor.activation,
                                            like.dialect == "torchao_v1" ? like.dialect : "torchao_v2");
    if (!cls) continue;
    const std::optional<nlohmann::json> config = torchao_config(*cls, *scheme, *layout, tensor.activation);
    if (config && quantization_config(*config, nullptr)["quant_type"] == asked) return scheme;
  }
  return nullptr;
}

// The scheme of all quantized tensors. config.json and the class say what a tensor does not: the recipe among
// those of one meaning, and groups as long as a row.
std::string scheme_of_like(const Checkpoint& like, const std::string& path,
                           const std::vector<const NamedTensor*>& tensors) {
  const NamedTensor& first = *tensors.front();
  if (const Scheme* said = scheme_of_config(like, first)) return std::string(said->name());
  for (const NamedTensor* tensor : tensors)
    if (tensor->scheme != first.scheme || tensor->activation != first.activation)
      throw Failure(path + ": " + first.name + " is " + first.scheme + " under " +
                    std::string(first.activation.name()) + ", " + tensor->name + " is " + tensor->scheme +
                    " under " + std::string(tensor->activation.name()) + ": choose one with --scheme");
  const Scheme* generation = find_scheme(first.scheme + "_v1");
  return like.dialect == "torchao_v1" && generation ? std::string(generation->name()) : first.scheme;
}

// The word of --as under which a tensor of the first generation is written as in its pickle.
std::string_view dialect_of_like(const Checkpoint& like, const NamedTensor& tensor, const Scheme& scheme,
                                 Layout layout, const Limits& limits) {
  const SchemeTensor made = {&scheme, layout,           tensor.dtype, tensor.shape.at(0), tensor.shape.at(1),
                             {},      tensor.activation};
  std::vector<const TorchObject*> objects;
  for (const auto& zip : like.zips) objects.push_back(zip.get());
  for (const auto& legacy : like.legacies) objects.push_back(legacy.get());
  for (const TorchObject* object : objects)
    for (const TensorLeaf& leaf : tensor_leaves(object->root, limits))
      if (leaf.name == tensor.name) return dialect_like(leaf.node, made);
  return "torchao_v1";
}

// "AffineQuantizedTensor with UintxAQTTensorImpl"
std::string class_of(const NamedTensor& tensor) {
  for (const auto& [key, value] : tensor.attributes.items())
    if ((key.ends_with("tensor_impl") || key.ends_with("layout_tensor")) && value.is_object())
      return tensor.type + " with " + value.value("_type", "");
  return tensor.type;
}

void take_from_like(QuantizeArguments& words) {
  OpenOptions options = words.options.open;
  options.dialect.clear();
  const Checkpoint like = open_checkpoint(words.like, options);
  std::vector<const NamedTensor*> tensors;
  for (const NamedTensor& tensor : like.tensors) {
    if (tensor.type == "Tensor" || tensor.type == "Parameter") continue;
    if (tensor.scheme.empty())
      throw Failure(words.like + ": " + tensor.name + " is " + class_of(tensor) +
                    ", which qcts can read but not write: choose a scheme with --scheme");
    tensors.push_back(&tensor);
  }
  if (tensors.empty()) throw Failure(words.like + " has no quantized tensor, so --like chooses nothing");
  const NamedTensor& first = *tensors.front();
  words.scheme = scheme_of_like(like, words.like, tensors);
  if (words.activation.empty()) words.activation = first.activation.name();
  if (words.layout.empty() && !first.layout)
    throw Failure(words.like + " does not say which CPU packed its weights: give the layout with --layout");
  if (words.layout.empty()) words.layout = first.layout->name();
  const Scheme& scheme = scheme_of(words.scheme);
  const std::optional<Layout> layout = scheme.find_layout(words.layout);
  if (words.dialect.empty() && like.dialect == "torchao_v1")
    words.dialect = layout ? dialect_of_like(like, first, scheme, *layout, options.limits) : like.dialect;
  words.as_like = true;
}

}  // namespace

QuantizeArguments spelled_out(QuantizeArguments words) {
  if (words.scheme.empty() && words.like.empty())
    throw UsageError("--scheme or --like must say how to quantize");
  if (words.scheme.empty()) take_from_like(words);
  if (const FirstRecipe* recipe = find_first_recipe(words.scheme, words.dialect)) {
    words.scheme = recipe->scheme;
    if (words.activation.empty()) words.activation = recipe->activation;
    if (words.dialect.empty()) words.dialect = recipe->dialect;
  }
  if (words.activation.empty()) words.activation = kWeightOnly.name();
  return words;
}

}  // namespace qcts::cli
