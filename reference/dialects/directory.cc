// SPDX-License-Identifier: BSD-3-Clause
// Opens a directory as transformers' save_pretrained writes it: config.json, and one file or the shards of an
// index, safetensors or .bin.
#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include "reference/dialects/config.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/directory/dcp_slices.h"
#include "reference/dialects/directory/directory_files.h"
#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/foreign_file.h"
#include "reference/formats/io/python_json.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxJsonBytes = 256u << 20;

}  // namespace

nlohmann::ordered_json read_json_file(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  const std::string name = path.filename().string();
  if (bytes.size() > kMaxJsonBytes) refuse(RefusalClass::LimitExceeded, name + " is larger than 256 MiB");
  const std::optional<std::string> marked = marked_python_numbers(as_text(bytes));
  const std::string_view text = marked ? *marked : as_text(bytes);
  const auto shallow = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    if (depth > 64) refuse(RefusalClass::LimitExceeded, name + ": JSON nested too deeply");
    return true;
  };
  try {
    return nlohmann::ordered_json::parse(text, shallow);
  } catch (const nlohmann::json::exception&) {
    refuse(RefusalClass::StJson, name + " is not JSON" + instead_of_json(bytes, name));
  }
}

namespace {

// Adds the name of the shard to a refusal.
template <typename Read>
auto of_shard(const Shard& shard, Read&& read) {
  try {
    return read();
  } catch (const Refused& refused) {
    Refusal refusal = refused.refusal();
    refusal.detail = shard.name + ": " + refusal.detail;
    throw Refused(std::move(refusal));
  }
}

// transformers reads the files of a folder by their names; a single file is read by its first bytes.
void refuse_other_format(const MappedFile& file) {
  refuse_foreign_file(file);
  const bool named_safetensors = file.path().ends_with(".safetensors");
  if (named_safetensors && (begins_with_zip(file.bytes()) || begins_as_torch_legacy(file.bytes()))) {
    const std::string kind = begins_with_zip(file.bytes()) ? foreign_zip(file.bytes()) : "";
    refuse(RefusalClass::NotArchive,
           "it is " + (kind.empty()
                           ? "a torch.save file, whose name should end in .bin or .pt: pass the file itself"
                           : kind));
  }
  if (!named_safetensors && has_safetensors_header(file.bytes()))
    refuse(RefusalClass::NotArchive,
           "it is a safetensors file, whose name should end in .safetensors: pass the file itself");
  if (begins_with_gguf(file.bytes()))
    refuse(RefusalClass::NotArchive,
           "it is a GGUF file, whose name should end in .gguf: pass the file itself");
}

void require_expected(const Shard& shard, const std::set<std::string>& held) {
  for (const std::string& key : shard.expected)
    if (!held.contains(key))
      refuse(RefusalClass::StorageRef,
             "the index assigns " + key + " to " + shard.name + ", which does not contain it");
}

// Merges the metadata of all shards. The shards own the keys.
class ShardMetadata {
 public:
  void add(const Safetensors& shard, const std::string& name, std::vector<std::string>& notes) {
    for (const auto& [key, value] : shard.metadata) {
      const auto [place, fresh] = places_.try_emplace(key, merged_.size());
      if (fresh) merged_.emplace_back(key, value);
      const std::string& known = merged_[place->second].second;
      if (key == kTensorNames && !fresh) list_more(known, value, name);
      if (key == kTensorNames || key == kDcpSharding || known == value) continue;
      if (value.find("\"_type\"") != std::string::npos)
        refuse(RefusalClass::SubclassSchema, name + ": its metadata for " + key + " is not another shard's");
      notes.push_back(name + ": its metadata for " + key + " is not another shard's, which is kept");
    }
  }

  std::vector<std::pair<std::string, std::string>> take() {
    if (names_.is_array()) merged_[places_.at(kTensorNames)].second = names_.dump();
    return std::move(merged_);
  }

 private:
  using Json = nlohmann::ordered_json;
  static constexpr std::string_view kTensorNames = "tensor_names";

  void list_more(const std::string& before, const std::string& value, const std::string& name) {
    if (!names_.is_array()) {
      if (value == before) return;
      names_ = Json::array();
      append(before, name);
    }
    append(value, name);
  }

  void append(const std::string& text, const std::string& name) {
    const Json more = Json::parse(text, nullptr, false);
    if (!more.is_array()) refuse(RefusalClass::SubclassSchema, name + ": tensor_names is not a list");
    for (const auto& item : more)
      if (listed_.insert(item).second) names_.push_back(item);
  }

  std::map<std::string_view, size_t> places_;  // in merged_
  std::vector<std::pair<std::string, std::string>> merged_;
  Json names_;             // null while all shards list the same
  std::set<Json> listed_;  // in names_
};

void read_others_of_folder(Checkpoint& checkpoint, const QuantConfig& config, const OpenOptions& options,
                           ReadBudget& budget) {
  if (!options.dialect.empty()) return;
  const std::string why = join_foreign_parts(checkpoint, config, budget);
  name_foreign(checkpoint, config.method, why, budget);
}

void read_safetensors_shards(Checkpoint& checkpoint, const std::vector<Shard>& shards,
                             const QuantConfig& config, const OpenOptions& options) {
  SafetensorsView view;
  view.budget = ReadBudget::none();
  ShardMetadata metadata;
  DcpSlices slices;
  std::set<std::string> held;
  for (const Shard& shard : shards) {
    const auto file = MappedFile::open(shard_path(checkpoint.path, shard.name));
    checkpoint.file_bytes += file->bytes().size();
    const auto& read = checkpoint.safetensors.emplace_back(of_shard(shard, [&] {
      refuse_other_format(*file);
      return std::make_shared<const Safetensors>(read_safetensors(file, safetensors_options(options)));
    }));
    slices.add(*read, shard.name);
    std::set<std::string> here;
    for (const SafetensorsEntry& entry : read->entries) {
      if (!held.insert(entry.name).second)
        refuse(RefusalClass::DuplicateEntry, entry.name + " in two shards, one of them " + shard.name);
      here.insert(entry.name);
      view.entries.push_back(&entry);
    }
    require_expected(shard, here);
    metadata.add(*read, shard.name, checkpoint.warnings);
    view.budget.join(read->budget);
  }
  if (shards.size() == 1) refuse_dcp_slices(*checkpoint.safetensors.front(), checkpoint.warnings);
  view.metadata = metadata.take();
  fill_from_safetensors(checkpoint, view, options);
  join_by_keys(checkpoint, options, view.budget);
  read_others_of_folder(checkpoint, config, options, view.budget);
}

void read_pickled_shards(Checkpoint& checkpoint, const std::vector<Shard>& shards, const QuantConfig& config,
                         const OpenOptions& options) {
  std::set<std::string> held;
  ReadBudget budget = ReadBudget::none();
  for (const Shard& shard : shards) {
    const auto file = MappedFile::open(shard_path(checkpoint.path, shard.name));
    checkpoint.file_bytes += file->bytes().size();
    const size_t first = checkpoint.tensors.size();
    of_shard(shard, [&] {
      refuse_other_format(*file);
      read_pickled(checkpoint, file, options, budget);
    });
    std::set<std::string> here;
    for (size_t i = first; i < checkpoint.tensors.size(); ++i) {
      const std::string& name = checkpoint.tensors[i].name;
      if (!held.insert(name).second)
        refuse(RefusalClass::DuplicateEntry, name + " in two shards, one of them " + shard.name);
      here.insert(name);
    }
    require_expected(shard, here);
  }
  note_further(checkpoint);
  join_by_keys(checkpoint, options, budget);
  read_others_of_folder(checkpoint, config, options, budget);
}

}  // namespace

Checkpoint open_directory(const fs::path& path, const OpenOptions& options) {
  Checkpoint checkpoint;
  checkpoint.format = Format::directory;
  checkpoint.dialect = "plain";
  checkpoint.path = path;
  if (fs::is_regular_file(path / "config.json")) checkpoint.config = read_json_file(path / "config.json");
  if (!checkpoint.config.is_null() && !checkpoint.config.is_object())
    refuse(RefusalClass::StJson, "config.json is not a JSON object");
  const std::vector<Shard> shards = find_shards(path, checkpoint.warnings);
  const bool safe =
      std::ranges::all_of(shards, [](const Shard& shard) { return shard.name.ends_with(".safetensors"); });
  if (shards[0].name.ends_with(".gguf")) {
    std::vector<fs::path> paths;
    for (const Shard& shard : shards) paths.push_back(shard_path(path, shard.name));
    read_gguf_parts(checkpoint, paths, options);
    return checkpoint;
  }
  const QuantConfig config = quant_config(checkpoint.config, path);
  if (safe)
    read_safetensors_shards(checkpoint, shards, config, options);
  else
    read_pickled_shards(checkpoint, shards, config, options);
  check_config(checkpoint, options);
  return checkpoint;
}

}  // namespace qcts
