// SPDX-License-Identifier: BSD-3-Clause
// qcts quantize --scheme NAME IN OUT: quantizes and saves a float checkpoint as torchao or TinyQ would.
#include <cmath>
#include <deque>
#include <iostream>
#include <memory>
#include <unordered_set>

#include <unistd.h>

#include "reference/comparison/object_values.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/tied_weights.h"
#include "reference/numerics/soft_float.h"
#include "suites/base/json_document.h"
#include "suites/base/terminal.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/quantize.h"

namespace qcts::cli {

std::vector<OutputTensor> output_tensors(const Checkpoint& checkpoint, const Quantized& replaced) {
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

void require_only_tensors(const Checkpoint& checkpoint) {
  if (checkpoint.script)
    throw Failure(checkpoint.path.string() +
                  ": a TorchScript program, which would be lost in the new container");
  for_each_object_value(checkpoint, [&](const ObjectValue& held) {
    if (held.part == ObjectValue::Part::value)
      throw Failure(checkpoint.path.string() + ": '" + (held.path.empty() ? held.text : held.path) +
                    "' is not a tensor and would be lost in the new container");
  });
}

namespace {

using Json = nlohmann::ordered_json;

QuantizeRules rules_of(const QuantizeArguments& words, const QuantizePlan& plan,
                       const Checkpoint& checkpoint) {
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
  if (plan.folder) keep_as_transformers(checkpoint, rules);
  return rules;
}

SchemeTensor quantized(const QuantizePlan& plan, const NamedTensor& tensor) {
  const Tensor& data = tensor.payload[0].tensor;
  const WeightShape shape = {recipe_dtype(*plan.scheme, data.dtype), data.shape[0], data.shape[1]};
  const std::vector<std::byte> weight = in_dtype(data, shape.dtype);
  const WeightRecipe recipe = plan.cls ? plan.cls->recipe : WeightRecipe::current;
  const Planes plain =
      quantize_by(recipe, *plan.scheme, {shape.dtype, shape.n, shape.k, weight}, plan.layout);
  const bool packed = plan.layout != kPlain;
  return {plan.scheme,
          plan.layout,
          shape.dtype,
          shape.n,
          shape.k,
          packed ? plan.scheme->pack(plain, shape, plan.layout) : plain,
          plan.activation,
          plan.policy_planes,
          0,
          plan.dialect};
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

// Like output_tensors(), with TinyQ's layers split into parts; `parts` owns the data of the result.
// A weight of few columns takes more bytes than before where a layout pads it.
void note_larger(const NamedTensor& tensor, const SchemeTensor& quantized, std::vector<std::string>& notes) {
  const Tensor& data = tensor.payload[0].tensor;
  const uint64_t dense = static_cast<uint64_t>(data.numel()) * dtype_bytes(data.dtype);
  uint64_t bytes = 0;
  for (const Plane& plane : quantized.planes) bytes += plane.bytes.size();
  if (bytes > dense)
    notes.push_back(tensor.name + ": its codes and scales take " + grouped(bytes) +
                    " bytes, more than the dense weight's " + grouped(dense));
}

std::vector<OutputTensor> output_layers(const Checkpoint& checkpoint, const Quantized& replaced,
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

// Names of one place in the graph (a container with two names) can only change together.
Replacements replacements_of(const std::vector<TensorLeaf>& leaves, const Quantized& replaced) {
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

// `tied`: the tensors hold some that IN does not store, so they become a new state dict.
void write_out(const QuantizePlan& plan, const QuantizeArguments& words, const Checkpoint& checkpoint,
               const Quantized& replaced, bool tied, ByteSink& out) {
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
  if (!tied && checkpoint.zips.size() + checkpoint.legacies.size() == 1)
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

void print_choice(const std::string& basis, const std::vector<TiedName>& tied,
                  const std::vector<QuantizeDecision>& decisions) {
  constexpr size_t kLabel = 12;
  Printout out(screen_of(STDOUT_FILENO));
  for (const TiedName& weight : tied)
    out.item(
        "added", kLabel,
        weight.target + ": config.json ties it to " + weight.source + ", and IN stores only one of them");
  out.text("layers chosen by " + basis + "; --include, --exclude and --like change the choice");
  for (const QuantizeDecision& decision : decisions) {
    const std::string& name = decision.tensor->name;
    if (decision.reason.empty())
      out.item("quantized", kLabel, name);
    else
      out.item("left float", kLabel, name + ": " + decision.reason);
  }
  std::cout << out.str() << std::flush;
}

Json choice_json(const QuantizeArguments& words, const QuantizePlan& plan, const std::string& basis,
                 const std::vector<TiedName>& tied, const std::vector<QuantizeDecision>& decisions) {
  Json json = {{"scheme", words.scheme},
               {"layout", plan.layout.name()},
               {"activation", plan.activation.name()},
               {"out", words.out},
               {"type", plan.type()},
               {"written_as", plan.cls ? Json(plan.cls->writers) : Json("TinyQ 006b7b9")},
               {"import", plan.cls ? Json(plan.cls->module) : Json(nullptr)},
               {"chosen_by", basis},
               {"added", Json::array()}};
  for (const TiedName& weight : tied)
    json["added"].push_back({{"name", weight.target}, {"tied_to", weight.source}});
  json["quantized"] = Json::array();
  json["left"] = Json::array();
  for (const QuantizeDecision& decision : decisions) {
    if (decision.reason.empty())
      json["quantized"].push_back(decision.tensor->name);
    else
      json["left"].push_back(
          {{"name", decision.tensor->name}, {"reason", decision.reason}, {"asked", decision.asked}});
  }
  return json;
}

void print_summary(const QuantizeArguments& words, const QuantizePlan& plan, size_t quantized, size_t all) {
  Printout out(screen_of(STDOUT_FILENO));
  out.text(std::to_string(quantized) + " of " + std::to_string(all) + " tensors are " + plan.type() + " (" +
           words.scheme + ", layout " + std::string(plan.layout.name()) + ")" +
           (plan.cls ? ", as " + std::string(plan.cls->writers) + "; Python: import " +
                           std::string(plan.cls->module)
                     : ""));
  std::cout << out.str();
}

int run_quantize(const QuantizeArguments& given) {
  const QuantizeArguments words = spelled_out(given);
  const QuantizePlan plan = quantize_plan(words);
  OpenOptions options = words.options.open;
  options.config_is_a_plan = true;
  Checkpoint opened = open_checkpoint(words.in, options);
  require_no_gguf(opened, "quantize");
  // A folder for transformers stores tied weights once; a state dict holds them all.
  const std::vector<TiedName> tied = plan.folder ? std::vector<TiedName>() : add_tied_weights(opened);
  const Checkpoint& checkpoint = opened;
  for (const CheckpointFinding& finding : checkpoint.findings)
    throw Failure(checkpoint.path.string() + ": " + finding_text(finding) +
                  ": quantize needs a float checkpoint");
  if (plan.folder) require_folder(words, plan, checkpoint);
  const QuantizeRules rules = rules_of(words, plan, checkpoint);
  const std::vector<QuantizeDecision> decisions =
      quantize_decisions(checkpoint, *plan.scheme, plan.layout, rules, plan.activation, plan.cls);
  std::vector<std::string> notes = checkpoint.warnings;
  const std::vector<std::string> missed = unmatched(checkpoint, rules);
  notes.insert(notes.end(), missed.begin(), missed.end());
  const std::string basis = basis_of_choice(checkpoint, rules);
  bool complete = missed.empty();
  size_t chosen = 0;
  for (const QuantizeDecision& decision : decisions) {
    complete = complete && (decision.reason.empty() || !decision.asked);
    chosen += decision.reason.empty();
  }
  if (!words.options.json) print_choice(basis, tied, decisions);
  const auto finish = [&](int exit_code) {
    if (words.options.json) print_json("quantize", choice_json(words, plan, basis, tied, decisions));
    print_notes(notes);
    return exit_code;
  };
  if (chosen == 0) {
    notes.push_back("no tensor is quantized: " + words.out + " is not written");
    return finish(3);
  }
  if (words.dry_run) {
    notes.push_back("--dry-run: " + words.out + " is not written");
    return finish(words.strict && !complete ? 1 : 0);
  }
  Quantized replaced;
  for (const QuantizeDecision& decision : decisions) {
    if (!decision.reason.empty()) continue;
    note_non_finite(*decision.tensor, notes);
    const auto made = replaced.emplace(decision.tensor, quantized(plan, *decision.tensor)).first;
    note_larger(*decision.tensor, made->second, notes);
  }
  if (plan.folder) {
    const std::vector<std::string> more = write_folder(words, plan, checkpoint, decisions, replaced);
    notes.insert(notes.end(), more.begin(), more.end());
  } else {
    save_file(words.out,
              [&](ByteSink& out) { write_out(plan, words, checkpoint, replaced, !tied.empty(), out); });
  }
  if (!words.like.empty()) {
    const std::vector<std::string> more = not_as_like(words, checkpoint);
    notes.insert(notes.end(), more.begin(), more.end());
  }
  if (!words.options.json) print_summary(words, plan, chosen, decisions.size());
  print_written(words.out, words.options.json);
  return finish(words.strict && !complete ? 1 : 0);
}

}  // namespace

void add_quantize(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<QuantizeArguments>();
  CLI::App* command = app.add_subcommand("quantize", "quantize a float checkpoint as torchao or TinyQ does");
  command->add_option("IN", words->in, "float tensors: safetensors, torch zip, or a directory")->required();
  command
      ->add_option("OUT", words->out,
                   "a state dict (.pt, .pth, .bin), .safetensors in torchao's dialect, or a folder that "
                   "transformers loads")
      ->required();
  command->add_option(
      "--scheme", words->scheme,
      "a scheme in `qcts schemes`, or a torchao 0.9 or 0.13 recipe by its name in quant_api.py, in its own "
      "class: int4_weight_only, float8_weight_only, ...; default: the scheme of --like");
  command
      ->add_option(
          "--as", words->dialect,
          "write the classes of torchao_v2 (0.18.0, the default) or torchao_v1 (0.9.0 to 0.17.0; "
          "torchao_v1_qdq: in QDQLayout), or a file for an older version: torchao_0.9 to torchao_0.5")
      ->check(CLI::IsMember(std::vector<std::string>(write_dialects().begin(), write_dialects().end()))
                  .description(""));  // a line of help for all of them would be too long
  command->add_option("--layout", words->layout,
                      "int4: tile_packed_4d (default), cpu_avx512, cpu_avx2, cpu_default (.pt only)");
  command->add_option("--activation", words->activation,
                      "how linear treats x: a policy in `qcts schemes` (default weight_only)");
  add_static_options(*command, words->scales);
  command
      ->add_option("--include", words->rules.include,
                   "glob of * and ? on full or leaf names; default: the weights of Linear layers, "
                   "by config.json's architecture or by names and shapes")
      ->allow_extra_args(false);
  command
      ->add_option("--exclude", words->rules.exclude,
                   "glob of * and ? on full or leaf names; wins over --include")
      ->allow_extra_args(false);
  command->add_option("--like", words->like,
                      "quantize the tensors that are quantized in this checkpoint; a folder's "
                      "quantization_config is copied too");
  command->add_option(
      "--max-shard-size", words->max_shard_size,
      "if OUT is a folder: the maximum size of a weight file, such as 5GB or 200KB; default: split as IN is");
  command->add_flag("--overwrite", words->overwrite, "replace OUT if it is a model folder");
  command->add_flag("--dry-run", words->dry_run, "list the chosen layers and write nothing");
  command->add_flag("--strict", words->strict, "exit code 1 if a chosen layer stays float");
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] { return run_quantize(*words); });
  });
}

}  // namespace qcts::cli
