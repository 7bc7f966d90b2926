// SPDX-License-Identifier: BSD-3-Clause
// qcts convert --as torchao_v2: pickles of torchao's first generation in the classes of today.
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "reference/comparison/content.h"
#include "reference/comparison/meaning.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/convert.h"
#include "reference/dialects/names/model_names.h"
#include "suites/base/json_document.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/convert.h"
#include "suites/cli/files/convert_today.h"
#include "suites/cli/files/model_config.h"
#include "suites/cli/files/weight_files.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Config = nlohmann::ordered_json;

struct Source {
  const TorchObject* object = nullptr;
  fs::path path;
};
std::vector<Source> sources_of(const Checkpoint& checkpoint) {
  std::vector<Source> sources;
  for (const auto& zip : checkpoint.zips) sources.push_back({zip.get(), zip->file->path()});
  for (const auto& legacy : checkpoint.legacies) sources.push_back({legacy.get(), legacy->file->path()});
  return sources;
}

// A weight file of OUT.
struct WrittenFile {
  std::string name;
  uint64_t bytes = 0;             // of the tensors; a storage that several share counts once
  std::vector<std::string> keys;  // the entries of safetensors
};

WrittenFile write_pickle(const Checkpoint& checkpoint, const Source& source, const TodaysTensors& today,
                         const ConvertArguments& words, const fs::path& out, const std::string& name) {
  const EditedZip edited = with_todays_tensors(checkpoint, *source.object, today, words.options.open.limits);
  save_file(out, [&](ByteSink& sink) {
    write_torch_zip(archive_prefix(name), edited.root, edited.storages, sink);
  });
  WrittenFile written = {name, 0, {}};
  for (const auto& storage : edited.storages) written.bytes += storage->bytes.size();
  return written;
}

WrittenFile write_entries(const EncodedSafetensors& encoded, const fs::path& out, const std::string& name) {
  save_file(out, [&](ByteSink& sink) { write_safetensors(encoded.entries, encoded.metadata, sink); });
  WrittenFile written = {name, 0, {}};
  for (const auto& [key, tensor] : encoded.entries) {
    written.bytes += bytes_of(tensor.dtype, tensor.shape);
    written.keys.push_back(key);
  }
  return written;
}

// Every shard has the metadata of all tensors, as transformers writes it.
std::vector<WrittenFile> write_safetensors_shards(const Checkpoint& checkpoint, const TodaysTensors& today,
                                                  const ConvertArguments& words, const fs::path& folder) {
  std::vector<NamedTensor> tensors = read_today(checkpoint, today, words.options.open);
  std::vector<std::string> on_disk;
  for (const NamedTensor& tensor : tensors) on_disk.push_back(tensor.name);
  const std::vector<MemoryNames> names = memory_names(checkpoint.config, on_disk);
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].in_memory = names[i].names;
  const std::string dialect(safetensors_dialect(tensors));
  EncodedSafetensors whole = encode_safetensors(tensors, dialect, false);
  std::map<std::string, std::string> metadata(whole.metadata.begin(), whole.metadata.end());
  if (metadata.try_emplace("format", "pt").second) whole.metadata.emplace_back("format", "pt");

  const std::vector<Source> sources = sources_of(checkpoint);
  std::map<std::string, size_t> homes;
  for (size_t i = 0; i < sources.size(); ++i)
    for (const TensorLeaf& leaf : tensor_leaves(sources[i].object->root, words.options.open.limits))
      homes.emplace(leaf.name, i);
  std::vector<std::vector<NamedTensor>> shards(sources.size());
  for (NamedTensor& tensor : tensors) {
    const auto home = homes.find(tensor.name);
    shards[home == homes.end() ? 0 : home->second].push_back(std::move(tensor));
  }
  std::erase_if(shards, [](const std::vector<NamedTensor>& shard) { return shard.empty(); });
  std::vector<WrittenFile> written;
  for (size_t i = 0; i < shards.size(); ++i) {
    EncodedSafetensors part = encode_safetensors(shards[i], dialect, false);
    part.metadata = whole.metadata;
    const std::string name = weight_file(i, shards.size(), true);
    written.push_back(write_entries(part, folder / name, name));
  }
  return written;
}

std::vector<WrittenFile> write_shards(const Checkpoint& checkpoint, const TodaysTensors& today,
                                      const ConvertArguments& words, bool safetensors,
                                      const fs::path& folder) {
  if (safetensors) return write_safetensors_shards(checkpoint, today, words, folder);
  std::vector<WrittenFile> written;
  for (const Source& source : sources_of(checkpoint)) {
    // Compares names, because a shard may be a link into the hub's cache.
    const std::string name = source.path.lexically_relative(checkpoint.path).string();
    fs::create_directories((folder / name).parent_path());
    written.push_back(
        write_pickle(checkpoint, source, today, words, folder / name, fs::path(name).filename().string()));
    written.back().name = name;
  }
  return written;
}

// The index that places tensors in the shards of IN. Its name is empty if there is none.
struct ShardIndex {
  std::string name;
  Config json;
};
ShardIndex index_of(const Checkpoint& checkpoint) {
  std::set<std::string> shards;
  for (const Source& source : sources_of(checkpoint))
    shards.insert(source.path.lexically_relative(checkpoint.path).string());
  for (const BesideFile& file : files_beside(checkpoint)) {
    if (!file.name.ends_with(".index.json")) continue;
    Config json = read_json_file(checkpoint.path / file.name);
    const Config map = json.is_object() ? json.value("weight_map", Config()) : Config();
    for (const auto& [key, shard] : map.items())
      if (shard.is_string() && shards.contains(shard.get<std::string>())) return {file.name, std::move(json)};
  }
  return {};
}

// Writes the index again, with the size of the new tensors and the keys and files of OUT.
void write_index(const ShardIndex& index, const std::vector<WrittenFile>& written, bool safetensors,
                 const fs::path& folder) {
  Config json = index.json;
  uint64_t bytes = 0;
  for (const WrittenFile& file : written) bytes += file.bytes;
  if (!json.contains("metadata") || !json["metadata"].is_object()) json["metadata"] = Config::object();
  json["metadata"]["total_size"] = bytes;
  std::string name = index.name;
  if (safetensors) {
    nlohmann::json map = nlohmann::json::object();
    for (const WrittenFile& file : written)
      for (const std::string& key : file.keys) map[key] = file.name;
    json["weight_map"] = map;
    name = weight_file(0, 1, true) + ".index.json";
  }
  save_file(folder / name, bytes_of_text(json_file(json)));
}

void write_whole_folder(const Checkpoint& checkpoint, const TodaysTensors& today,
                        const ConvertArguments& words, bool safetensors, const fs::path& folder) {
  const ShardIndex index = index_of(checkpoint);
  const Config config = todays_config(checkpoint, today);
  fs::create_directory(folder);
  const std::vector<WrittenFile> written = write_shards(checkpoint, today, words, safetensors, folder);
  std::set<std::string> left_out, names;
  for (const WrittenFile& file : written) names.insert(file.name);
  if (!index.name.empty()) left_out.insert(index.name);
  // transformers finds several shards only by their index.
  if (safetensors ? written.size() > 1 : !index.name.empty()) {
    write_index(index, written, safetensors, folder);
    if (safetensors) names.insert(weight_file(0, 1, true) + ".index.json");
  }
  if (!config.is_null()) {
    left_out.insert("config.json");
    save_file(folder / "config.json", bytes_of_text(json_file(config)));
  }
  copy_beside(checkpoint, folder, left_out, names);
}

// Compares OUT, under the name `written`, with IN. Returns the further attributes that OUT cannot store.
std::vector<std::string> compare_with(const Checkpoint& checkpoint, const fs::path& written,
                                      const ConvertArguments& words) {
  const Checkpoint out = read_back(written, words);
  const auto fail = [&](const std::string& what) {
    throw Failure(what + " in the file that would become " + words.out + ", so OUT is not written");
  };
  const MeaningFindings meaning = compare_meaning(checkpoint, out, "", "");
  if (!meaning.different.empty()) {
    const ContentDifference& first = meaning.different.kept().front();
    fail(first.where() + ": " + first.a + " in " + words.in + ", but " + first.b);
  }
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : out.tensors) by_name.emplace(tensor.name, &tensor);
  std::vector<std::string> lost;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) fail(tensor.name + ": is not");
    for (const auto& [name, value] : tensor.attributes.items())
      if (name.starts_with(kFurther) && found->second->attributes.value(name, Config()) != value)
        lost.push_back("OUT cannot store " + tensor.name + "." + name.substr(kFurther.size()));
    for (const InnerTensor& part : tensor.payload)
      if (part.name.starts_with(kFurther) && !find_payload(*found->second, part.name))
        lost.push_back("OUT cannot store " + tensor.name + "." + part.name.substr(kFurther.size()));
  }
  return lost;
}

// Does OUT become safetensors? Throws UsageError for a dialect that does not fit.
bool becomes_safetensors(const Checkpoint& checkpoint, const ConvertArguments& words) {
  const bool folder = checkpoint.format == Format::directory;
  if (!folder) require_ending(words.out);
  const bool safetensors = folder ? words.dialect == "torchao_safetensors" : ends_as_safetensors(words.out);
  const std::string fitting = safetensors ? "torchao_safetensors" : words.as;
  if (!words.dialect.empty() && words.dialect != fitting)
    throw UsageError("--as " + words.as + " writes dialect " +
                     (folder ? words.as + " or torchao_safetensors" : fitting + " to " + words.out) +
                     ", not " + words.dialect);
  return safetensors;
}

void report_today(const ConvertArguments& words, const Checkpoint& checkpoint, const TodaysTensors& today,
                  bool safetensors, const std::vector<std::string>& lost) {
  if (words.options.json)
    print_json("convert", {{"out", words.out},
                           {"format", safetensors ? "safetensors" : "torch_zip"},
                           {"dialect", safetensors ? "torchao_safetensors" : words.as},
                           {"tensors", checkpoint.tensors.size()},
                           {"no_place", lost}});
  else
    std::cout << today.made.size() << " of " << checkpoint.tensors.size() << " tensors are in " << words.out
              << " as torchao 0.18.0 classes, read back and equal in meaning\n";
  print_notes(lost);
}

}  // namespace

int convert_to_today(const Checkpoint& checkpoint, const ConvertArguments& words) {
  const bool folder = checkpoint.format == Format::directory;
  const bool safetensors = becomes_safetensors(checkpoint, words);
  if (folder && fs::exists(words.out))
    throw UsageError(words.out + ": exists; the new folder needs a new name");
  if (safetensors) require_names_and_tensors(checkpoint);
  const TodaysTensors today = todays_tensors(checkpoint, safetensors);
  Part part(words.out, folder ? "" : fs::path(words.out).extension().string());
  try {
    if (folder) {
      write_whole_folder(checkpoint, today, words, safetensors, part.path());
    } else if (safetensors) {
      const std::vector<NamedTensor> tensors = read_today(checkpoint, today, words.options.open);
      write_entries(encode_safetensors(tensors, safetensors_dialect(tensors), false), part.path(), words.out);
    } else {
      write_pickle(checkpoint, sources_of(checkpoint).at(0), today, words, part.path(), words.out);
    }
  } catch (const fs::filesystem_error& error) {
    throw WriteFailure(error.what());
  }
  const std::vector<std::string> lost = compare_with(checkpoint, part.path(), words);
  part.rename(words.out);
  report_today(words, checkpoint, today, safetensors, lost);
  return 0;
}

}  // namespace qcts::cli
