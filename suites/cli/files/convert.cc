// SPDX-License-Identifier: BSD-3-Clause
// qcts convert IN OUT: the same tensors in another container, dialect or library's format, or as floats. OUT
// is read and compared with IN before it gets its name.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include <unistd.h>

#include "reference/comparison/content.h"
#include "reference/comparison/layers.h"
#include "reference/comparison/meaning.h"
#include "reference/comparison/words.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/convert.h"
#include "reference/dialects/not_stored.h"
#include "reference/dialects/own_metadata.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/terminal.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/convert.h"
#include "suites/cli/files/convert_today.h"
#include "suites/cli/files/file_command.h"
#include "suites/cli/files/strict.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The file to write: its container and dialect.
struct Target {
  bool safetensors = false;
  std::string dialect;
  bool lone = false;  // one tensor without a name
  std::string file;   // in a folder
};

bool is_pickled(const Checkpoint& checkpoint) { return checkpoint.safetensors.empty(); }

bool is_safetensors_dialect(const std::string& name) {
  return name == "torchao_safetensors" || name == "torchao_2338";
}
bool is_pickle_dialect(const std::string& name) { return name.starts_with("torchao_v"); }

// Does the object hold one tensor and nothing else?
bool is_lone(const Checkpoint& checkpoint) {
  if (checkpoint.tensors.size() != 1) return false;
  if (!is_pickled(checkpoint))
    return checkpoint.dialect == "torchao_2338" && !metadata_of(checkpoint).contains("tensor_names");
  for (const auto& zip : checkpoint.zips)
    if (is_tensor_node(zip->root)) return true;
  for (const auto& legacy : checkpoint.legacies)
    if (is_tensor_node(legacy->root)) return true;
  return false;
}

// A folder goes to the other container, unless the dialect is one of its own.
bool folder_to_safetensors(const Checkpoint& checkpoint, const std::string& dialect) {
  return is_safetensors_dialect(dialect) || (is_pickled(checkpoint) && !is_pickle_dialect(dialect));
}

Target target_of(const Checkpoint& checkpoint, const ConvertArguments& words) {
  const bool folder = checkpoint.format == Format::directory;
  if (!folder) require_ending(words.out);
  Target target;
  target.safetensors =
      folder ? folder_to_safetensors(checkpoint, words.dialect) : ends_as_safetensors(words.out);
  target.file = target.safetensors ? "model.safetensors" : "pytorch_model.bin";
  target.lone = is_lone(checkpoint);
  const bool fits =
      target.safetensors ? !is_pickle_dialect(words.dialect) : !is_safetensors_dialect(words.dialect);
  if (!fits)
    throw UsageError("dialect " + words.dialect + " is not for " +
                     (target.safetensors ? "safetensors" : "pickles") + ": give OUT another ending");
  if (!target.safetensors && !is_pickled(checkpoint)) return target;
  if (is_pickled(checkpoint) && !target.safetensors)
    throw UsageError(words.in + " and " + words.out + " are both pickles: qcts resave copies one");
  target.dialect =
      words.dialect.empty() ? std::string(safetensors_dialect(checkpoint.tensors)) : words.dialect;
  return target;
}

void require_another_spelling(const Checkpoint& checkpoint, const Target& target,
                              const EncodedSafetensors& encoded) {
  if (is_pickled(checkpoint) || target.dialect != checkpoint.dialect) return;
  std::set<std::string_view> names;
  for (const auto& file : checkpoint.safetensors)
    for (const SafetensorsEntry& entry : file->entries) names.insert(entry.name);
  for (const auto& [name, tensor] : encoded.entries)
    if (!names.contains(name)) return;
  throw UsageError(checkpoint.path.string() + " is already safetensors of dialect " + target.dialect +
                   ": qcts resave copies it");
}

EncodedSafetensors encode(const Checkpoint& checkpoint, const Target& target) {
  EncodedSafetensors encoded = encode_safetensors(checkpoint.tensors, target.dialect, target.lone);
  std::map<std::string, std::string> keys(encoded.metadata.begin(), encoded.metadata.end());
  if (!is_pickled(checkpoint)) keys.erase("format");  // the input's own, if it has one
  for (const auto& [key, value] : own_metadata(checkpoint)) {
    const auto [place, fresh] = keys.try_emplace(key, value);
    if (!fresh && place->second != value)
      throw Failure("__metadata__." + key + ": dialect " + target.dialect + " uses this key itself");
  }
  // transformers opens no safetensors without it.
  if (checkpoint.format == Format::directory && is_pickled(checkpoint)) keys.try_emplace("format", "pt");
  encoded.metadata.assign(keys.begin(), keys.end());
  require_another_spelling(checkpoint, target, encoded);
  return encoded;
}

void require_no_metadata(const Checkpoint& checkpoint) {
  for (const auto& [key, value] : own_metadata(checkpoint))
    if (key != "format" || value != "pt")
      throw Failure("__metadata__." + key + ": " + in_quotes(value) +
                    ", which a pickled state dict cannot hold");
}

// The bytes of the new file.
using Fill = std::function<void(ByteSink&)>;

Fill filling(const Checkpoint& checkpoint, const Target& target, const std::string& prefix) {
  if (target.safetensors) {
    const auto encoded = std::make_shared<const EncodedSafetensors>(encode(checkpoint, target));
    return [encoded](ByteSink& sink) { write_safetensors(encoded->entries, encoded->metadata, sink); };
  }
  require_no_metadata(checkpoint);
  const auto edited = std::make_shared<const EditedZip>(encode_state_dict(checkpoint.tensors, target.lone));
  return [edited, prefix](ByteSink& sink) { write_torch_zip(prefix, edited->root, edited->storages, sink); };
}

// Compares OUT, under the name `written`, with IN. Returns what OUT cannot store.
ContentDifferences compare(const Checkpoint& checkpoint, const fs::path& written,
                           const ConvertArguments& words) {
  const Checkpoint out = read_back(written, words);
  const MeaningFindings meaning = compare_meaning(checkpoint, out, "", "");
  const ContentFindings found = compare_content(content_of(checkpoint), content_of(out));
  for (const ContentDifferences* differences : {&meaning.different, &found.different}) {
    if (differences->empty()) continue;
    const ContentDifference& first = differences->kept().front();
    throw Failure(first.where() + ": " + first.a + " in " + words.in + ", but " + first.b +
                  " in the file that would become " + words.out + ", so OUT is not written");
  }
  ContentDifferences lost;
  for (const ContentDifference& difference : found.not_comparable.kept())
    if (difference.path != "__metadata__.format") lost.add(difference);
  return lost;
}

ContentDifferences convert_file(const Checkpoint& checkpoint, const Target& target,
                                const ConvertArguments& words) {
  const Fill fill = filling(checkpoint, target, archive_prefix(words.out));
  Part part(words.out, fs::path(words.out).extension().string());
  save_file(part.path(), fill);
  ContentDifferences lost = compare(checkpoint, part.path(), words);
  part.rename(words.out);
  return lost;
}

// Writes all shards into one file and copies the files next to them, except for the shards' index.
ContentDifferences convert_folder(const Checkpoint& checkpoint, const Target& target,
                                  const ConvertArguments& words) {
  const fs::path out(words.out);
  if (fs::exists(out)) throw UsageError(words.out + ": exists; the new folder needs a new name");
  const Fill fill = filling(checkpoint, target, archive_prefix(target.file));
  Part part(out, "");
  try {
    fs::create_directory(part.path());
    std::set<std::string> indices;
    for (const BesideFile& file : files_beside(checkpoint))
      if (file.name.ends_with(".index.json")) indices.insert(file.name);
    copy_beside(checkpoint, part.path(), indices, {target.file});
    save_file(part.path() / target.file, fill);
  } catch (const fs::filesystem_error& error) {
    throw WriteFailure(error.what());
  }
  ContentDifferences lost = compare(checkpoint, part.path(), words);
  part.rename(out);
  return lost;
}

void print_lost(const ContentDifferences& lost) {
  constexpr size_t kShown = 20;
  std::vector<std::string> notes;
  for (const ContentDifference& difference : lost.kept())
    if (notes.size() < kShown)
      notes.push_back("OUT cannot store " + difference.where() + ": " + difference.a);
  if (lost.count() > kShown)
    notes.push_back("nor " + std::to_string(lost.count() - kShown) + " more: qcts diff IN OUT --all");
  print_notes(notes);
}

void report(const ConvertArguments& words, const Target& target, const Checkpoint& checkpoint,
            const ContentDifferences& lost) {
  const std::string container = target.safetensors ? "safetensors, dialect " + target.dialect : "a pickle";
  if (words.options.json) {
    Json list = Json::array();
    for (const ContentDifference& difference : lost.kept())
      list.push_back({{"path", difference.path},
                      {"field", difference.field},
                      {"in", difference.a},
                      {"out", difference.b}});
    print_json("convert", {{"out", words.out},
                           {"format", target.safetensors ? "safetensors" : "torch_zip"},
                           {"dialect", target.dialect},
                           {"tensors", checkpoint.tensors.size()},
                           {"no_place", list}});
  } else {
    Printout out(screen_of(STDOUT_FILENO));
    out.text(std::to_string(checkpoint.tensors.size()) + " tensors are in " + words.out + " (" + container +
             "), read back and equal");
    std::cout << out.str();
  }
  print_lost(lost);
}

// The targets that are not dialects of a container.
constexpr std::array<std::string_view, 3> kTargets = {"torchao", "compressed_tensors", "dense"};

bool is_target(const std::string& word) { return std::ranges::find(kTargets, word) != kTargets.end(); }

// Returns a message that there is no such target, with the nearest word; "" for a known one and for "".
std::string unknown_target(const std::string& word) {
  std::vector<std::string> names(kTargets.begin(), kTargets.end());
  for (std::string_view known : dialect_names()) names.emplace_back(known);
  if (word.empty() || std::ranges::find(names, word) != names.end()) return "";
  return "no dialect or target '" + word + "'" + did_you_mean(word, names);
}

void require_convertible(const Checkpoint& checkpoint, const ConvertArguments& words) {
  if (words.to != "dense") require_no_gguf(checkpoint, "convert");
  if (checkpoint.script)
    throw Failure(words.in + ": a TorchScript program, which no other container can hold");
  if (checkpoint.tensors.empty()) throw Failure(words.in + ": it holds no tensor");
  print_findings(checkpoint);
  if (words.strict) require_no_further(checkpoint);
  for (const CheckpointFinding& finding : checkpoint.findings)
    if (is_about_not_stored(checkpoint, finding))
      throw Failure(words.in + ": " + finding_text(finding) + ", so " + words.out + " is not written");
}

bool is_of_another_library(const NamedTensor& tensor) {
  return tensor.coded != nullptr || !tensor.foreign.empty();
}

// Sets what --to torchao and --to torchao_safetensors mean for a checkpoint of torchao.
void take_torchao_target(const Checkpoint& checkpoint, ConvertArguments& words) {
  if (words.to == "torchao") {
    if (std::ranges::all_of(checkpoint.tensors, is_plain))
      throw Failure(words.in + ": no tensor in it is quantized");
    words.as = kTodaysClasses;
    words.dialect.clear();
  } else if (words.as.empty() && checkpoint.dialect != "torchao_2338" && holds_first_generation(checkpoint)) {
    words.as = kTodaysClasses;
  }
}

int convert(ConvertArguments words) {
  const Checkpoint checkpoint = open_checkpoint(words.in, words.options.open);
  const bool folder = checkpoint.format == Format::directory;
  if ((folder || words.to == "compressed_tensors") && words.out.ends_with('/')) words.out.pop_back();
  require_convertible(checkpoint, words);
  if (words.to == "dense") return convert_to_dense(checkpoint, words);
  if (words.to == "compressed_tensors") return convert_to_compressed_tensors(checkpoint, words);
  if (words.to == "torchao" || words.to == "torchao_safetensors") {
    if (std::ranges::any_of(checkpoint.tensors, is_of_another_library))
      return convert_to_torchao(checkpoint, words);
    take_torchao_target(checkpoint, words);
  }
  if (!words.as.empty()) {
    if (is_pickled(checkpoint)) return convert_to_today(checkpoint, words);
    todays_tensors(checkpoint, true);  // refuses what torchao 0.18.0 has no class for
    if (folder && words.dialect.empty()) words.dialect = "torchao_safetensors";
  }
  Target target = target_of(checkpoint, words);
  if (target.safetensors) require_names_and_tensors(checkpoint);
  const ContentDifferences lost =
      folder ? convert_folder(checkpoint, target, words) : convert_file(checkpoint, target, words);
  report(words, target, checkpoint, lost);
  return 0;
}

// Throws UsageError for a word that is not a target, and for options that contradict it.
void take_target(ConvertArguments& words) {
  const std::string unknown = unknown_target(words.to);
  if (!unknown.empty()) throw UsageError(unknown);
  if (!is_target(words.to)) words.dialect = words.to;
  if (!words.as.empty() && (words.to == "dense" || words.to == "compressed_tensors"))
    throw UsageError("--as " + words.as + " writes torchao classes, not --to " + words.to);
  if (!words.pack.empty() && words.to != "dense")
    throw UsageError("--cpu-pack is for --to dense: other targets keep the codes as they are packed");
  if (!words.pack.empty()) cpu_layout(words.pack);
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ConvertArguments>();
  CLI::App* command = app.add_subcommand(
      "convert", "write the same tensors in another container, dialect or library's format, or as floats");
  command->add_option("IN", words->in, "a file, or a directory with config.json and shards")->required();
  command
      ->add_option("OUT", words->out, "a file ending in .safetensors, .pt, .pth or .bin; or a new directory")
      ->required();
  command->add_option(
      "--to,--dialect", words->to,
      "torchao: its 0.18.0 classes; compressed_tensors: a folder; dense: floats, as dequantize gives them; "
      "or "
      "a dialect: torchao_safetensors, torchao_2338, plain; default: the dialect that holds IN");
  command
      ->add_option("--as", words->as,
                   "torchao_v2: put the planes of torchao's first generation into the classes of 0.18.0")
      ->check(CLI::IsMember({"torchao_v2"}).description(""));
  command->add_option("--cpu-pack", words->pack,
                      "with --to dense: the CPU layout to assume for packed int4 weights that do not record "
                      "it: avx512, avx2 or default");
  command->add_flag("--other-rounding", words->other_rounding,
                    "write OUT even where its format rounds the same real values differently");
  add_strict(*command, words->strict);
  add_file_options(*command, words->options, "--read-dialect");
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] {
      take_target(*words);
      return convert(*words);
    });
  });
}

}  // namespace qcts::cli
