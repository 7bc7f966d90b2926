// SPDX-License-Identifier: BSD-3-Clause
// qcts dequantize IN OUT.safetensors: writes every tensor under its own name, in the dtype that its scheme
// dequantizes to.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "reference/comparison/object_values.h"
#include "reference/dialects/input_scale.h"
#include "reference/dialects/own_metadata.h"
#include "suites/base/json_document.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/dense_tensors.h"
#include "suites/cli/files/file_command.h"
#include "suites/cli/files/strict.h"

namespace qcts::cli {
namespace {

constexpr uint64_t kKeptBytes = uint64_t{64} << 20;

using NamedDense = std::pair<std::string, Tensor>;

struct DenseModel {
  std::vector<NamedDense> tensors;  // those beyond the first kKeptBytes have no storage, and are made again
  std::vector<const NamedTensor*> sources;  // of the same tensors
  std::vector<std::string> left_out;        // "NAME: reason"
};

// "first and 2 more"
std::string with_more(const std::vector<std::string>& names) {
  return names.front() + (names.size() > 1 ? " and " + grouped(names.size() - 1) + " more" : "");
}

// Without `partial`, throws Failure for the first tensor that cannot be dequantized.
DenseModel dense_model(const Checkpoint& checkpoint, const DenseTensors& dense, bool partial) {
  DenseModel model;
  const auto leave_out = [&](const std::string& why) {
    if (!partial) throw Failure(checkpoint.path.string() + ": " + why + " (--partial leaves it out)");
    model.left_out.push_back(why);
  };
  for (const std::string& why : dense.obstacles()) leave_out(why);
  uint64_t kept_bytes = 0;
  PageRelease pages(checkpoint);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    DenseTensors::Read found = dense.read(tensor);
    if (!found.tensor) {
      leave_out(found.why_not);
      continue;
    }
    const bool is_new = found.tensor->storage != nullptr &&
                        (tensor.payload.empty() || found.tensor->storage != tensor.payload[0].tensor.storage);
    if (is_new && (kept_bytes += found.tensor->storage->bytes.size()) > kKeptBytes)
      found.tensor->storage.reset();
    model.tensors.emplace_back(tensor.name, std::move(*found.tensor));
    model.sources.push_back(&tensor);
    pages.was_read(tensor);
  }
  return model;
}

struct LeftOut {
  size_t count = 0;
  std::string first;

  void add(const ObjectValue& held) {
    if (++count == 1) first = held.path.empty() ? held.text : held.path;
  }
  void note(const char* one, const char* several) const {
    if (count > 0)
      print_notes({std::to_string(count) + " " + (count > 1 ? several : one) + " not in OUT: " + first +
                   (count > 1 ? ", ..." : "")});
  }
};

// Notes the values that a file of tensors cannot hold.
void note_values(const Checkpoint& checkpoint) {
  if (checkpoint.script) print_notes({"the program is not in OUT"});
  size_t pairs = 0;
  for (const auto& file : checkpoint.ggufs) pairs += file->metadata.size();
  if (pairs > 0) print_notes({"the metadata of the GGUF file, " + grouped(pairs) + " values, is not in OUT"});
  LeftOut values, attributes;
  for_each_object_value(checkpoint, [&](const ObjectValue& held) {
    if (held.part == ObjectValue::Part::value) values.add(held);
    if (held.part == ObjectValue::Part::attribute && !held.path.ends_with("_metadata")) attributes.add(held);
  });
  values.note("value that is not a tensor is", "values that are not tensors are");
  attributes.note("attribute of a tensor or dict is", "attributes of tensors and dicts are");
}

// Names the scales of x that a dense weight has no place for: "0.weight.act_pre_scale".
std::vector<std::string> input_parts(const Checkpoint& checkpoint, const std::vector<NamedDense>& written) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : written) names.insert(name);
  std::vector<std::string> parts;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (names.contains(tensor.name))
      for (const std::string& part : parts_for_input(tensor)) parts.push_back(tensor.name + "." + part);
  return parts;
}

void note_input_parts(const Checkpoint& checkpoint, const std::vector<std::string>& parts) {
  if (parts.empty()) return;
  std::vector<std::string> notes = {"OUT cannot store the parts that act on x: " + with_more(parts)};
  std::vector<std::string> scaled;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (input_scale(tensor)) scaled.push_back(tensor.name);
  if (!scaled.empty())
    notes.push_back(
        "OUT leaves out the scale of x: the layer's real weight is OUT's weight multiplied by it, column by "
        "column, so a model that loads OUT computes something else: " +
        with_more(scaled));
  print_notes(notes);
}

void require_safetensors_name(const std::string& out) {
  if (!out.ends_with(".safetensors"))
    throw UsageError("OUT is written as safetensors: '" + out + "' should end in .safetensors");
}

}  // namespace

void add_dequantize(CLI::App& app, int& exit_code) {
  struct Arguments {
    FileOptions options;
    std::string in, out, pack;
    bool partial = false, strict = false;
  };
  auto words = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("dequantize", "write every tensor as floats under its own name");
  command->add_option("IN", words->in, "a file, or a directory with config.json and shards")->required();
  command->add_option("OUT", words->out, "a .safetensors file")->required();
  command->add_option(
      "--cpu-pack", words->pack,
      "CPU layout to assume for packed int4 weights that do not record it: avx512, avx2 or default");
  command->add_flag("--partial", words->partial,
                    "leave out tensors that cannot be dequantized, with a note for each");
  add_strict(*command, words->strict);
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] {
      require_safetensors_name(words->out);
      if (!words->pack.empty()) cpu_layout(words->pack);
      const Checkpoint checkpoint = open_checkpoint(words->in, words->options.open);
      print_findings(checkpoint);
      if (words->strict) require_no_further(checkpoint);
      const std::string layout = assumed_layout(checkpoint, words->pack);
      const DenseTensors dense(checkpoint, layout);
      const DenseModel model = dense_model(checkpoint, dense, words->partial);
      const auto& tensors = model.tensors;
      const auto& left_out = model.left_out;
      std::vector<std::string> notes;
      for (const std::string& why : left_out) notes.push_back("left out: " + why);
      print_notes(notes);
      if (tensors.empty()) {
        note_values(checkpoint);
        print_notes({"there is no tensor to write: " + words->out + " is not written"});
        return 3;
      }
      std::map<std::string, std::string> metadata = own_metadata(checkpoint);
      metadata.try_emplace("format", "pt");
      const std::vector<std::pair<std::string, std::string>> pairs(metadata.begin(), metadata.end());
      PageRelease pages(checkpoint);
      const auto make = [&](size_t index) {
        pages.was_read(*model.sources[index]);
        if (const Tensor& kept = tensors[index].second; kept.storage != nullptr) return kept;
        return std::move(*dense.read(*model.sources[index]).tensor);
      };
      save_file(words->out, [&](ByteSink& sink) {
        write_safetensors(tensors, pairs, sink, SafetensorsOrder::by_dtype, make);
      });
      note_values(checkpoint);
      note_two_roundings(checkpoint);
      const std::vector<std::string> not_in_out = input_parts(checkpoint, tensors);
      note_input_parts(checkpoint, not_in_out);
      if (words->options.json) {
        nlohmann::ordered_json report = {{"out", words->out},
                                         {"tensors", tensors.size()},
                                         {"left_out", left_out},
                                         {"input_parts", not_in_out}};
        report["cpu_pack"] =
            layout.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(layout);
        print_json("dequantize", report);
      }
      print_written(words->out, words->options.json);
      return 0;
    });
  });
}

}  // namespace qcts::cli
