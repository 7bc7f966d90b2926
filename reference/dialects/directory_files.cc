// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/directory_files.h"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "reference/dialects/directory_kinds.h"
#include "reference/formats/io/foreign_file.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

// transformers 5.24, utils/hub.py and modeling_utils.py; diffusers and peft likewise.
constexpr std::array<std::string_view, 13> kFixedNames = {"model.safetensors",
                                                          "model.safetensors.index.json",
                                                          "pytorch_model.bin",
                                                          "pytorch_model.bin.index.json",
                                                          "diffusion_pytorch_model.safetensors",
                                                          "diffusion_pytorch_model.safetensors.index.json",
                                                          "diffusion_pytorch_model.bin",
                                                          "diffusion_pytorch_model.bin.index.json",
                                                          "adapter_model.safetensors",
                                                          "adapter_model.bin",
                                                          "consolidated.safetensors.index.json",
                                                          "consolidated.safetensors",
                                                          "consolidated.00.pth"};

bool is_index(std::string_view name) { return name.ends_with(".index.json"); }

// Is it one of the files that trainers save beside the weights?
bool is_training_state(std::string_view name) {
  constexpr std::array<std::string_view, 9> kBegins = {"optimizer", "scheduler",     "training_args",
                                                       "rng_state", "random_states", "scaler",
                                                       "sampler",   "dl_state_dict", "trainer_state"};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); });
}

// Only the shards' names in order of the keys: an index may have hundreds of thousands.
class IndexHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  IndexHandler(std::string where, std::span<const std::byte> bytes)
      : where_(std::move(where)), bytes_(bytes) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t& text) override {
    if (depth_ == 2 && in_map_) shards_[text].push_back(key_);
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 2 && in_map_) value();
    if (++depth_ > 64) refuse(RefusalClass::LimitExceeded, where_ + ": JSON nested too deep");
    if (depth_ == 2 && key_ == "weight_map") in_map_ = found_ = true;
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2) in_map_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 2 && in_map_) value();
    if (++depth_ > 64) refuse(RefusalClass::LimitExceeded, where_ + ": JSON nested too deep");
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ <= 2) key_ = text;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    refuse(RefusalClass::StJson, where_ + " is not JSON" + instead_of_json(bytes_, where_));
  }

  std::vector<Shard> take() {
    if (!found_) refuse(RefusalClass::StJson, where_ + " has no weight_map");
    std::vector<Shard> shards;
    for (auto& [name, keys] : shards_) shards.push_back({name, std::move(keys)});
    return shards;
  }

 private:
  bool value() {
    if (depth_ == 2 && in_map_)
      refuse(RefusalClass::StJson, where_ + ": the shard of " + key_ + " is no name");
    return true;
  }

  std::string where_, key_;
  std::span<const std::byte> bytes_;
  size_t depth_ = 0;
  bool in_map_ = false, found_ = false;
  std::map<std::string, std::vector<std::string>> shards_;
};

std::vector<Shard> shards_of_index(const fs::path& path) {
  constexpr uint64_t kMaxBytes = 256u << 20;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::string name = path.filename().string();
  if (file->bytes().size() > kMaxBytes) refuse(RefusalClass::LimitExceeded, name + " is larger than 256 MiB");
  const char* text = reinterpret_cast<const char*>(file->bytes().data());
  IndexHandler handler(name, file->bytes());
  nlohmann::json::sax_parse(text, text + file->bytes().size(), &handler);
  return handler.take();
}

std::vector<std::string> weight_files(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (names_weights(name) && !name.starts_with('.')) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string fixed_name(const std::vector<std::string>& files) {
  for (std::string_view name : kFixedNames)
    if (std::ranges::binary_search(files, name)) return std::string(name);
  return "";
}

// Without a fixed name: safetensors before pickles, an index before single files.
std::string only_name(const fs::path& directory, const std::vector<std::string>& files) {
  std::vector<std::string> safe, pickled;
  for (const std::string& name : files)
    if (!is_training_state(name))
      (name.find(".safetensors") != std::string::npos ? safe : pickled).push_back(name);
  const std::vector<std::string>& chosen = safe.empty() ? pickled : safe;
  if (chosen.empty()) refuse(RefusalClass::NotArchive, why_no_checkpoint(directory));
  std::vector<std::string> indexes, weights;
  for (const std::string& name : chosen) (is_index(name) ? indexes : weights).push_back(name);
  if (indexes.size() > 1)
    refuse(RefusalClass::NotArchive,
           "two indexes, " + indexes[0] + " and " + indexes[1] + ": name one checkpoint's directory");
  if (indexes.size() == 1) return indexes[0];
  if (weights.size() > 1)
    refuse(RefusalClass::NotArchive,
           "two weight files without an index, " + weights[0] + " and " + weights[1] + ": name one of them");
  return weights[0];
}

// One file, with the keys of an index beside it that names nothing else.
std::vector<Shard> own_index(const fs::path& directory, const std::string& chosen,
                             std::vector<std::string>& files) {
  const auto index = std::ranges::find(files, chosen + ".index.json");
  if (index != files.end()) {
    try {
      std::vector<Shard> shards = shards_of_index(directory / *index);
      if (shards.size() == 1 && shards[0].name == chosen) {
        files.erase(index);
        return shards;
      }
    } catch (const Refused&) {
    }
  }
  return {{chosen, {}}};
}

// Weight files that belong to nothing that is read.
void note_unread(const std::vector<std::string>& files, const std::string& chosen,
                 const std::vector<Shard>& shards, std::vector<std::string>& notes) {
  std::vector<std::string> unread;
  for (const std::string& name : files)
    if (name != chosen && std::ranges::find(shards, name, &Shard::name) == shards.end())
      unread.push_back(name);
  if (unread.empty()) return;
  const bool stale = !is_index(chosen) && std::ranges::any_of(unread, is_index);
  std::string text =
      chosen + " is read" + (stale ? ", as transformers does" : "") + "; beside it and not read: ";
  constexpr size_t kMaxNamed = 8;
  for (size_t i = 0; i < std::min(unread.size(), kMaxNamed); ++i) text += (i > 0 ? ", " : "") + unread[i];
  if (unread.size() > kMaxNamed) text += " and " + std::to_string(unread.size() - kMaxNamed) + " more";
  notes.push_back(std::move(text));
}

// root lies at or below REPOSITORY/snapshots/REVISION, where the hub's cache links to REPOSITORY/blobs.
bool is_blob_of(const fs::path& root, const fs::path& target) {
  for (fs::path at = root; at.has_relative_path(); at = at.parent_path()) {
    if (at.parent_path().filename() != "snapshots") continue;
    return target.parent_path() == at.parent_path().parent_path() / "blobs";
  }
  return false;
}

}  // namespace

bool names_weights(std::string_view name) {
  constexpr std::array<std::string_view, 5> kEndings = {".safetensors", ".bin", ".pt", ".pth", ".ckpt"};
  return is_index(name) ||
         std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

fs::path shard_path(const fs::path& directory, const std::string& name) {
  const fs::path relative(name);
  const bool climbs = std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  const bool odd = name.find('\\') != std::string::npos || name.find('\0') != std::string::npos;
  if (name.empty() || relative.is_absolute() || climbs || odd)
    refuse(RefusalClass::EntryName, "shard name \"" + name + "\"");
  const fs::path resolved = fs::weakly_canonical(directory / relative), root = fs::canonical(directory);
  const bool beneath =
      std::mismatch(root.begin(), root.end(), resolved.begin(), resolved.end()).first == root.end();
  if (!beneath && !is_blob_of(root, resolved))
    refuse(RefusalClass::EntryName,
           "shard \"" + name + "\" leads out of the directory: name the file itself");
  return directory / relative;
}

std::vector<Shard> find_shards(const fs::path& directory, std::vector<std::string>& notes) {
  std::vector<std::string> files = weight_files(directory);
  std::string chosen = fixed_name(files);
  if (chosen.empty()) chosen = only_name(directory, files);
  std::vector<Shard> shards;
  if (is_index(chosen))
    shards = shards_of_index(directory / chosen);
  else
    shards = own_index(directory, chosen, files);
  for (const Shard& shard : shards) {
    const fs::path path = shard_path(directory, shard.name);
    if (fs::exists(path)) continue;
    refuse(RefusalClass::StorageRef,
           (is_index(chosen) ? chosen + " names the shard " : "") + shard.name +
               (is_index(chosen) ? ", which" : "") + " is " +
               (fs::is_symlink(path) ? "a link to a file that is not there" : "not there"));
  }
  note_unread(files, chosen, shards, notes);
  return shards;
}

}  // namespace qcts
