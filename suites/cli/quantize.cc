// SPDX-License-Identifier: BSD-3-Clause
// qcts quantize --scheme NAME IN OUT: quantizes and saves a float checkpoint as torchao 0.18.0 or TinyQ
// would.
#include <cmath>
#include <deque>
#include <iostream>
#include <memory>
#include <unordered_set>

#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/dialects/quantize_decision.h"
#include "reference/numerics/soft_float.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/cli/commands.h"
#include "suites/cli/file_command.h"
#include "suites/cli/static_scales.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

struct QuantizeArguments {
  FileOptions options;
  std::string in, out, scheme, layout, like, activation{kWeightOnly.name()};
  StaticScales scales;
  QuantizeRules rules;
  bool strict = false;
};

struct Plan {
  const Scheme* scheme = nullptr;
  Layout layout;
  Policy activation;
  Planes policy_planes;               // a static policy's planes, the same for every weight
  const TorchaoClass* cls = nullptr;  // nullptr: TinyQ's layers
  bool safetensors = false;

  std::string type() const {
    if (cls) return std::string(cls->name);
    return scheme->name() == "tinyq_w8a32" ? "W8A32LinearLayer" : "W8A16LinearLayer";
  }
};

const Scheme& scheme_of(const std::string& word) {
  if (const Scheme* scheme = find_scheme(word)) return *scheme;
  std::vector<std::string> known;
  for (const Scheme* scheme : schemes()) known.emplace_back(scheme->name());
  throw UsageError("no scheme '" + word + "'" + did_you_mean(word, known));
}

// The layouts of a torchao class; the first is the default.
std::vector<std::string> writable_layouts(const Scheme& scheme) {
  std::vector<std::string> names;
  for (const LayoutInfo& layout : scheme.layouts())
    if (scheme.family() == "tinyq" || torchao_class(scheme, layout)) names.emplace_back(layout.name);
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == "tile_packed_4d" || names[i] == "swizzled") std::swap(names[0], names[i]);
  return names;
}

Policy activation_of(const Scheme& scheme, const std::string& word) {
  if (const std::optional<Policy> found = scheme.find_activation(word)) return *found;
  std::vector<std::string> known;
  for (const ActivationInfo& policy : scheme.activations()) known.emplace_back(policy.name);
  throw UsageError(std::string(scheme.name()) + " has no activation policy '" + word + "'" +
                   did_you_mean(word, known));
}

Plan plan_of(const QuantizeArguments& words) {
  Plan plan;
  plan.scheme = &scheme_of(words.scheme);
  const std::vector<std::string> layouts = writable_layouts(*plan.scheme);
  const std::string layout = words.layout.empty() && !layouts.empty() ? layouts.front() : words.layout;
  plan.activation = activation_of(*plan.scheme, words.activation);
  plan.policy_planes = static_planes(*plan.scheme, plan.activation, words.scales);
  const bool is_layout = std::find(layouts.begin(), layouts.end(), layout) != layouts.end();
  if (is_layout) {
    plan.layout = plan.scheme->layout_named(layout);
    plan.cls = torchao_class(*plan.scheme, plan.layout, plan.activation);
  }
  if (is_layout && !plan.cls && torchao_class(*plan.scheme, plan.layout))
    throw UsageError("no class of torchao 0.18.0 holds " + words.scheme + " under the policy '" +
                     words.activation + "'");
  if (layouts.empty()) throw UsageError(words.scheme + " is read and judged, but not written by qcts");
  if (!is_layout || (!plan.cls && plan.scheme->family() != "tinyq"))
    throw UsageError(words.scheme + " is not written in the layout '" + layout + "'" +
                     did_you_mean(layout, layouts));
  const size_t dot = words.out.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : words.out.substr(dot);
  const std::vector<std::string> endings = {".pt", ".pth", ".bin", ".safetensors"};
  if (std::find(endings.begin(), endings.end(), ending) == endings.end())
    throw UsageError("OUT '" + words.out + "' ends in neither .pt, .pth, .bin nor .safetensors" +
                     did_you_mean(ending, endings));
  plan.safetensors = ending == ".safetensors";
  if (plan.safetensors && !plan.cls) throw UsageError("TinyQ writes no safetensors: use .pth");
  if (plan.safetensors && !plan.cls->in_safetensors)
    throw UsageError("torchao writes no " + std::string(plan.cls->name) + " (layout " + layout +
                     ") to safetensors: use .pt");
  return plan;
}

QuantizeRules rules_of(const QuantizeArguments& words, const Checkpoint& checkpoint) {
  QuantizeRules rules = words.rules;
  if (!words.like.empty()) {
    OpenOptions options = words.options.open;
    options.dialect.clear();
    rules.has_like = true;
    for (const NamedTensor& tensor : open_checkpoint(words.like, options).tensors)
      if (tensor.type != "Tensor" && tensor.type != "Parameter") rules.like.push_back(tensor.name);
    if (rules.like.empty()) throw Failure(words.like + " has no quantized tensor, so --like chooses nothing");
  }
  for (std::string& name : excluded_by_config(checkpoint.config)) rules.exclude.push_back(std::move(name));
  return rules;
}

SchemeTensor quantized(const Plan& plan, const NamedTensor& tensor) {
  const Tensor& data = tensor.payload[0].tensor;
  const WeightShape shape = {recipe_dtype(*plan.scheme, data.dtype), data.shape[0], data.shape[1]};
  const std::vector<std::byte> weight = in_dtype(data, shape.dtype);
  const Planes plain = plan.scheme->quantize({shape.dtype, shape.n, shape.k, weight}, plan.layout);
  const bool packed = plan.layout != kPlain;
  return {plan.scheme,     plan.layout,       shape.dtype,
          shape.n,         shape.k,           packed ? plan.scheme->pack(plain, shape, plan.layout) : plain,
          plan.activation, plan.policy_planes};
}

// As in the libraries, quantizing non-finite weights is not an error: scales become NaN or infinite, or codes
// saturate.
void note_non_finite(const NamedTensor& tensor, std::vector<std::string>& notes) {
  const Tensor& data = tensor.payload[0].tensor;
  std::vector<std::byte> scratch;
  const auto bytes = row_major_view(data, scratch);
  int64_t nan = 0, infinite = 0;
  for (int64_t i = 0; i < data.numel(); ++i) {
    const float value = load_float(data.dtype, bytes, i);
    nan += std::isnan(value);
    infinite += std::isinf(value);
  }
  if (nan + infinite > 0)
    notes.push_back(tensor.name + ": " + std::to_string(nan) + " of its values are NaN and " +
                    std::to_string(infinite) + " infinite");
}

std::vector<OutputTensor> output_tensors(
    const Checkpoint& checkpoint, const std::unordered_map<const NamedTensor*, SchemeTensor>& replaced) {
  std::vector<OutputTensor> tensors;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const auto found = replaced.find(&tensor);
    if (found == replaced.end() && (tensor.payload.size() != 1 || !tensor.attributes.empty()))
      throw Failure(tensor.name + ": a " + tensor.type + " cannot be carried over into another container");
    tensors.push_back({tensor.name, found == replaced.end() ? &tensor.payload[0].tensor : nullptr,
                       found == replaced.end() ? nullptr : &found->second});
  }
  return tensors;
}

// Like output_tensors(), with TinyQ's layers split into parts; `parts` owns the data of the result.
std::vector<OutputTensor> output_layers(const Checkpoint& checkpoint,
                                        const std::unordered_map<const NamedTensor*, SchemeTensor>& replaced,
                                        std::deque<std::pair<std::string, Tensor>>& parts) {
  const std::vector<OutputTensor> whole = output_tensors(checkpoint, replaced);
  const auto module_of = [](const std::string& name) { return name.substr(0, name.size() - 6); };
  std::unordered_map<std::string, const Tensor*> biases;
  for (const OutputTensor& tensor : whole)
    if (tensor.plain) biases.emplace(tensor.name, tensor.plain);
  std::unordered_set<std::string> moved;
  for (const OutputTensor& tensor : whole)
    if (tensor.quantized) moved.insert(module_of(tensor.name) + "bias");
  std::vector<OutputTensor> tensors;
  for (const OutputTensor& tensor : whole) {
    if (tensor.plain) {
      if (!moved.contains(tensor.name)) tensors.push_back(tensor);
      continue;
    }
    const std::string module = module_of(tensor.name);
    if (const auto bias = biases.find(module + "bias"); bias != biases.end())
      tensors.push_back({bias->first, bias->second, nullptr});
    for (auto& part : tinyq_parts(*tensor.quantized, module)) {
      const auto& kept = parts.emplace_back(std::move(part));
      tensors.push_back({kept.first, &kept.second, nullptr});
    }
  }
  return tensors;
}

// Throws Failure if the checkpoint has contents that a new container would lose.
void require_only_tensors(const Checkpoint& checkpoint) {
  if (checkpoint.script)
    throw Failure(checkpoint.path.string() +
                  ": a TorchScript program, which would be lost in the new container");
  std::vector<const TorchObject*> objects;
  for (const auto& zip : checkpoint.zips) objects.push_back(zip.get());
  for (const auto& legacy : checkpoint.legacies) objects.push_back(legacy.get());
  for (const TorchObject* object : objects)
    if (const std::optional<std::string> leaf = first_other_leaf(object->root))
      throw Failure(checkpoint.path.string() + ": '" + *leaf +
                    "' is not a tensor and would be lost in the new container");
}

// torch.save names the archive after the file, without folder and last ending; "archive" if the name is not
// ASCII.
std::string archive_prefix(const std::string& out) {
  const std::string stem = std::filesystem::path(out).stem().string();
  const bool ascii = std::all_of(stem.begin(), stem.end(), [](unsigned char c) { return c < 128; });
  return stem.empty() || !ascii ? "archive" : stem;
}

// Names of one place in the graph (a container with two names) can only change together.
Replacements replacements_of(const std::vector<TensorLeaf>& leaves,
                             const std::unordered_map<const NamedTensor*, SchemeTensor>& replaced) {
  Replacements places;
  std::unordered_map<std::string_view, const SchemeTensor*> by_name;
  for (const auto& [tensor, made] : replaced) by_name.emplace(tensor->name, &made);
  for (const TensorLeaf& leaf : leaves)
    if (const auto found = by_name.find(leaf.name); found != by_name.end())
      places.emplace(leaf.place, found->second);
  for (const TensorLeaf& leaf : leaves)
    if (places.contains(leaf.place) && !by_name.contains(leaf.name))
      throw Failure(leaf.name + " is the same entry as a tensor to be quantized");
  return places;
}

void write_out(const Plan& plan, const QuantizeArguments& words, const Checkpoint& checkpoint,
               const std::unordered_map<const NamedTensor*, SchemeTensor>& replaced, ByteSink& out) {
  if (plan.safetensors) {
    require_only_tensors(checkpoint);
    EncodedSafetensors encoded = encode_safetensors(output_tensors(checkpoint, replaced));
    for (const auto& file : checkpoint.safetensors)
      for (const auto& entry : file->metadata)
        if (entry.first == "format" && file == checkpoint.safetensors.front())
          encoded.metadata.push_back(entry);
    return write_safetensors(encoded.entries, std::move(encoded.metadata), out);
  }
  EditedZip edited;
  const TorchObject* object = nullptr;
  if (checkpoint.zips.size() + checkpoint.legacies.size() == 1)
    object = checkpoint.zips.empty() ? static_cast<const TorchObject*>(checkpoint.legacies[0].get())
                                     : checkpoint.zips[0].get();
  if (object != nullptr) {
    const std::vector<TensorLeaf> leaves = tensor_leaves(object->root, words.options.open.limits);
    const Replacements places = replacements_of(leaves, replaced);
    edited = plan.cls ? replace_tensors(*object, places) : replace_by_tinyq(*object, places);
  } else if (!plan.cls) {
    require_only_tensors(checkpoint);
    std::deque<std::pair<std::string, Tensor>> parts;
    edited = encode_state_dict(output_layers(checkpoint, replaced, parts));
  } else {
    require_only_tensors(checkpoint);
    edited = encode_state_dict(output_tensors(checkpoint, replaced));
  }
  write_torch_zip(archive_prefix(words.out), edited.root, edited.storages, out);
}

void print_decisions(const QuantizeArguments& words, const Plan& plan,
                     const std::vector<QuantizeDecision>& decisions) {
  Json json = {{"scheme", words.scheme},
               {"layout", plan.layout.name()},
               {"activation", plan.activation.name()},
               {"out", words.out},
               {"type", plan.type()},
               {"import", plan.cls ? Json(plan.cls->module) : Json(nullptr)}};
  json["quantized"] = Json::array();
  json["left"] = Json::array();
  size_t quantized = 0;
  for (const QuantizeDecision& decision : decisions) {
    const bool done = decision.reason.empty();
    quantized += done;
    if (done)
      json["quantized"].push_back(decision.tensor->name);
    else
      json["left"].push_back(
          {{"name", decision.tensor->name}, {"reason", decision.reason}, {"asked", decision.asked}});
    if (!words.options.json)
      std::cout << (done ? "quantized   " : "left float  ") << printable(decision.tensor->name)
                << printable(done ? "" : ": " + decision.reason) << "\n";
  }
  if (words.options.json) {
    print_json("quantize", json);
    return;
  }
  std::cout << quantized << " of " << decisions.size() << " tensors are " << plan.type() << " ("
            << words.scheme << ", layout " << plan.layout.name() << ")";
  if (plan.cls) std::cout << "; Python: import " << plan.cls->module;
  std::cout << "\n";
}

int run_quantize(const QuantizeArguments& words) {
  const Plan plan = plan_of(words);
  OpenOptions options = words.options.open;
  options.config_is_a_plan = true;
  const Checkpoint checkpoint = open_checkpoint(words.in, options);
  for (const CheckpointFinding& finding : checkpoint.findings)
    throw Failure(checkpoint.path.string() + ": " + finding_text(finding) +
                  ": quantize needs a float checkpoint");
  const QuantizeRules rules = rules_of(words, checkpoint);
  const std::vector<QuantizeDecision> decisions =
      quantize_decisions(checkpoint, *plan.scheme, plan.layout, rules);
  std::vector<std::string> notes = checkpoint.warnings;
  const std::vector<std::string> missed = unmatched(checkpoint, rules);
  notes.insert(notes.end(), missed.begin(), missed.end());
  std::unordered_map<const NamedTensor*, SchemeTensor> replaced;
  bool complete = missed.empty();
  for (const QuantizeDecision& decision : decisions) {
    complete = complete && (decision.reason.empty() || !decision.asked);
    if (!decision.reason.empty()) continue;
    note_non_finite(*decision.tensor, notes);
    replaced.emplace(decision.tensor, quantized(plan, *decision.tensor));
  }
  if (replaced.empty()) {
    print_decisions(words, plan, decisions);
    notes.push_back("no tensor is quantized: " + words.out + " is not written");
    print_notes(notes);
    return 3;
  }
  save_file(words.out, [&](ByteSink& out) { write_out(plan, words, checkpoint, replaced, out); });
  print_decisions(words, plan, decisions);
  print_written(words.out, words.options.json);
  print_notes(notes);
  return words.strict && !complete ? 1 : 0;
}

}  // namespace

void add_quantize(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<QuantizeArguments>();
  CLI::App* command =
      app.add_subcommand("quantize", "quantize a float checkpoint as torchao 0.18.0 or TinyQ does");
  command->add_option("IN", words->in, "float tensors: safetensors, torch zip, or a directory")->required();
  command
      ->add_option("OUT", words->out, "a state dict (.pt, .pth, .bin), or .safetensors in torchao's dialect")
      ->required();
  command->add_option("--scheme", words->scheme, "a scheme of `qcts schemes`")->required();
  command->add_option("--layout", words->layout,
                      "int4: tile_packed_4d (default), cpu_avx512, cpu_avx2, cpu_default (.pt only)");
  command->add_option("--activation", words->activation,
                      "how linear takes x: a policy of `qcts schemes` (default weight_only)");
  add_static_options(*command, words->scales);
  command
      ->add_option("--include", words->rules.include,
                   "glob of * and ? on full or leaf names; default: 2-D *.weight whose name is not that of "
                   "an embedding")
      ->allow_extra_args(false);
  command
      ->add_option("--exclude", words->rules.exclude,
                   "glob of * and ? on full or leaf names; wins over --include")
      ->allow_extra_args(false);
  command->add_option("--like", words->like, "quantize the tensors that are quantized in this checkpoint");
  command->add_flag("--strict", words->strict, "exit code 1 if a chosen layer stays float");
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] { return run_quantize(*words); });
  });
}

}  // namespace qcts::cli
