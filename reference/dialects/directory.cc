// SPDX-License-Identifier: BSD-3-Clause
// Opens a directory as transformers' save_pretrained writes it: config.json, and one file or the shards of an
// index, safetensors or .bin.
#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include "reference/dialects/config.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxJsonBytes = 256u << 20;

nlohmann::ordered_json read_json(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  const std::string name = path.filename().string();
  if (bytes.size() > kMaxJsonBytes) refuse(RefusalClass::LimitExceeded, name + " is larger than 256 MiB");
  const char* text = reinterpret_cast<const char*>(bytes.data());
  const auto shallow = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    if (depth > 64) refuse(RefusalClass::LimitExceeded, name + ": JSON nested too deeply");
    return true;
  };
  try {
    return nlohmann::ordered_json::parse(text, text + bytes.size(), shallow);
  } catch (const nlohmann::json::exception&) {
    refuse(RefusalClass::StJson, name + " is not JSON");
  }
}

// Resolves a shard's name, which must stay below the directory, links included.
fs::path beneath(const fs::path& directory, const std::string& name) {
  const fs::path relative(name);
  const bool climbs = std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  const bool odd = name.find('\\') != std::string::npos || name.find('\0') != std::string::npos;
  if (name.empty() || relative.is_absolute() || climbs || odd)
    refuse(RefusalClass::EntryName, "shard name \"" + name + "\"");
  const fs::path resolved = fs::weakly_canonical(directory / relative), root = fs::canonical(directory);
  if (std::mismatch(root.begin(), root.end(), resolved.begin(), resolved.end()).first != root.end())
    refuse(RefusalClass::EntryName, "shard \"" + name + "\" leads out of the directory");
  return directory / relative;
}

struct Shard {
  std::string name;
  std::vector<std::string> expected;  // keys that the index assigns to this shard
};

std::vector<Shard> shards_of_index(const fs::path& path) {
  const nlohmann::ordered_json index = read_json(path);
  const std::string where = path.filename().string();
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    refuse(RefusalClass::StJson, where + " has no weight_map");
  std::vector<Shard> shards;
  for (const auto& [key, file] : index["weight_map"].items()) {
    if (!file.is_string()) refuse(RefusalClass::StJson, where + ": the shard of " + key + " is not a name");
    const std::string name = file;
    auto shard = std::ranges::find(shards, name, &Shard::name);
    if (shard == shards.end()) shard = shards.insert(shards.end(), {name, {}});
    shard->expected.push_back(key);
  }
  std::ranges::sort(shards, {}, &Shard::name);
  return shards;
}

std::vector<std::string> files_with(const fs::path& directory,
                                    std::initializer_list<std::string_view> endings) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); }))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Finds the index, or else the only weight file; safetensors before pickles, as transformers prefers.
std::vector<Shard> find_shards(const fs::path& directory, std::vector<std::string>& warnings) {
  const std::vector<std::string> safe = files_with(directory, {".safetensors.index.json", ".safetensors"});
  const std::vector<std::string> pickled = files_with(directory, {".bin.index.json", ".bin", ".pt", ".pth"});
  if (!safe.empty() && !pickled.empty())
    warnings.push_back("reading safetensors; ignoring " + pickled.front());
  const std::vector<std::string>& files = safe.empty() ? pickled : safe;
  if (files.empty()) refuse(RefusalClass::NotArchive, "no .safetensors, .bin, .pt or .pth in the directory");
  std::vector<std::string> indexes, weights;
  for (const std::string& name : files) (name.ends_with(".index.json") ? indexes : weights).push_back(name);
  if (indexes.size() > 1)
    refuse(RefusalClass::NotArchive,
           "two indexes, " + indexes[0] + " and " + indexes[1] + ": name one checkpoint's directory");
  if (indexes.size() == 1) return shards_of_index(directory / indexes[0]);
  if (weights.size() > 1)
    refuse(RefusalClass::NotArchive,
           "two weight files without an index, " + weights[0] + " and " + weights[1] + ": name one of them");
  return {{weights[0], {}}};
}

void require_expected(const Shard& shard, const std::set<std::string>& held) {
  for (const std::string& key : shard.expected)
    if (!held.contains(key))
      refuse(RefusalClass::StorageRef,
             "the index assigns " + key + " to " + shard.name + ", which does not contain it");
}

// `places` maps keys to view.metadata; its keys point into the shards' own metadata.
void merge_metadata(SafetensorsView& view, std::map<std::string_view, size_t>& places,
                    const Safetensors& shard, const std::string& name) {
  for (const auto& [key, value] : shard.metadata) {
    const auto [place, fresh] = places.try_emplace(key, view.metadata.size());
    if (fresh) {
      view.metadata.emplace_back(key, value);
      continue;
    }
    std::string& known = view.metadata[place->second].second;
    if (key == "tensor_names" && known != value) {
      nlohmann::ordered_json names = nlohmann::ordered_json::parse(known, nullptr, false);
      const nlohmann::ordered_json more = nlohmann::ordered_json::parse(value, nullptr, false);
      if (!names.is_array() || !more.is_array())
        refuse(RefusalClass::SubclassSchema, name + ": tensor_names is not a list");
      std::set<nlohmann::ordered_json> listed(names.begin(), names.end());
      for (const auto& item : more)
        if (listed.insert(item).second) names.push_back(item);
      known = names.dump();
    } else if (known != value) {
      refuse(RefusalClass::SubclassSchema, name + ": its metadata for " + key + " is not another shard's");
    }
  }
}

void read_safetensors_shards(Checkpoint& checkpoint, const std::vector<Shard>& shards,
                             const OpenOptions& options) {
  SafetensorsView view;
  view.budget = ReadBudget::none();
  std::map<std::string_view, size_t> metadata;
  std::set<std::string> held;
  for (const Shard& shard : shards) {
    const auto file = MappedFile::open(beneath(checkpoint.path, shard.name));
    checkpoint.file_bytes += file->bytes().size();
    const auto& read = checkpoint.safetensors.emplace_back(
        std::make_shared<const Safetensors>(read_safetensors(file, safetensors_options(options))));
    std::set<std::string> here;
    for (const SafetensorsEntry& entry : read->entries) {
      if (!held.insert(entry.name).second)
        refuse(RefusalClass::DuplicateEntry, entry.name + " in two shards, one of them " + shard.name);
      here.insert(entry.name);
      view.entries.push_back(&entry);
    }
    require_expected(shard, here);
    merge_metadata(view, metadata, *read, shard.name);
    view.budget.join(read->budget);
  }
  fill_from_safetensors(checkpoint, view, options);
  join_by_keys(checkpoint, options, view.budget);
}

void read_pickled_shards(Checkpoint& checkpoint, const std::vector<Shard>& shards,
                         const OpenOptions& options) {
  std::set<std::string> held;
  ReadBudget budget = ReadBudget::none();
  for (const Shard& shard : shards) {
    const auto file = MappedFile::open(beneath(checkpoint.path, shard.name));
    checkpoint.file_bytes += file->bytes().size();
    const size_t first = checkpoint.tensors.size();
    read_pickled(checkpoint, file, options, budget);
    std::set<std::string> here;
    for (size_t i = first; i < checkpoint.tensors.size(); ++i) {
      const std::string& name = checkpoint.tensors[i].name;
      if (!held.insert(name).second)
        refuse(RefusalClass::DuplicateEntry, name + " in two shards, one of them " + shard.name);
      here.insert(name);
    }
    require_expected(shard, here);
  }
  join_by_keys(checkpoint, options, budget);
}

}  // namespace

Checkpoint open_directory(const fs::path& path, const OpenOptions& options) {
  Checkpoint checkpoint;
  checkpoint.format = Format::directory;
  checkpoint.dialect = "plain";
  checkpoint.path = path;
  if (fs::exists(path / "config.json")) checkpoint.config = read_json(path / "config.json");
  const std::vector<Shard> shards = find_shards(path, checkpoint.warnings);
  const bool safe =
      std::ranges::all_of(shards, [](const Shard& shard) { return shard.name.ends_with(".safetensors"); });
  if (safe)
    read_safetensors_shards(checkpoint, shards, options);
  else
    read_pickled_shards(checkpoint, shards, options);
  check_config(checkpoint, options);
  return checkpoint;
}

}  // namespace qcts
