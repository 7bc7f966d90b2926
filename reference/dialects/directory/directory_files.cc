// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/directory/directory_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "reference/dialects/directory/dcp_slices.h"
#include "reference/dialects/directory/directory_kinds.h"
#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/foreign_file.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/python_json.h"
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

// "model.safetensors.index.json", or of a variant "model.safetensors.index.fp16.json".
bool is_index(std::string_view name) { return name.ends_with(".json") && name.find(".index.") != name.npos; }

// Is it one of the files that trainers save next to the weights?
bool is_training_state(std::string_view name) {
  constexpr std::array<std::string_view, 10> kBegins = {
      "optimizer", "scheduler", "training_args", "rng_state",     "random_states",
      "scaler",    "sampler",   "dl_state_dict", "trainer_state", "distrib_optim"};
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
    if (shards_.empty()) refuse(RefusalClass::StJson, where_ + ": its weight_map names no tensor");
    std::vector<Shard> shards;
    for (auto& [name, keys] : shards_) shards.push_back({name, std::move(keys)});
    return shards;
  }

 private:
  bool value() {
    if (depth_ == 2 && in_map_)
      refuse(RefusalClass::StJson, where_ + ": the shard of " + key_ + " is not a name");
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
  const std::optional<std::string> marked = marked_python_numbers(as_text(file->bytes()));
  const std::string_view text = marked ? *marked : as_text(file->bytes());
  IndexHandler handler(name, file->bytes());
  nlohmann::json::sax_parse(text, &handler);
  return handler.take();
}

std::vector<std::string> weight_files(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    if (names_weights(name) && !name.starts_with('.') && !entry.is_directory(error)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string fixed_name(const std::vector<std::string>& files) {
  for (std::string_view name : kFixedNames)
    if (std::ranges::binary_search(files, name)) return std::string(name);
  return "";
}

// Without a fixed name: safetensors before pickles before GGUF, and no training states. OpenVINO and ncnn
// keep weights in a .bin next to a description of the network.
std::vector<std::string> candidates(const fs::path& directory, const std::vector<std::string>& files) {
  std::vector<std::string> safe, pickled, gguf;
  for (const std::string& name : files) {
    const auto described = [&](const char* ending) {
      return name.ends_with(".bin") && fs::exists(directory / (name.substr(0, name.size() - 4) + ending));
    };
    if (name.ends_with(".gguf"))
      gguf.push_back(name);
    else if (!is_training_state(name) && !described(".xml") && !described(".param"))
      (name.find(".safetensors") != std::string::npos ? safe : pickled).push_back(name);
  }
  if (safe.empty() && pickled.empty() && gguf.empty())
    refuse(RefusalClass::NotArchive, why_no_checkpoint(directory));
  // llama.cpp's image projector is a separate model next to the one that it goes with.
  const auto is_projector = [](const std::string& name) { return name.find("mmproj") != std::string::npos; };
  if (!std::ranges::all_of(gguf, is_projector)) std::erase_if(gguf, is_projector);
  return !safe.empty() ? safe : !pickled.empty() ? pickled : gguf;
}

// The one index, or else the one weight file.
std::string only_name(const std::vector<std::string>& names) {
  std::vector<std::string> indexes, weights;
  for (const std::string& name : names) (is_index(name) ? indexes : weights).push_back(name);
  if (indexes.size() > 1)
    refuse(RefusalClass::NotArchive,
           "two indexes, " + indexes[0] + " and " + indexes[1] + ": pass one checkpoint's directory");
  if (indexes.size() == 1) return indexes[0];
  if (const std::string why = why_parts(weights); !why.empty()) refuse(RefusalClass::NotArchive, why);
  if (weights.size() > 1)
    refuse(RefusalClass::NotArchive,
           "two weight files without an index, " + weights[0] + " and " + weights[1] + ": pass one of them");
  return weights[0];
}

struct NumberedName {
  std::string begin, end;  // "model-", ".safetensors"
  size_t part = 0, total = 0, digits = 0;

  std::string of(size_t number) const {
    const auto text = [this](size_t value) {
      const std::string plain = std::to_string(value);
      return std::string(plain.size() < digits ? digits - plain.size() : 0, '0') + plain;
    };
    return begin + text(number) + "-of-" + text(total) + end;
  }
};

// "model-00001-of-00003.safetensors"
std::optional<NumberedName> numbered_name(const std::string& name) {
  constexpr std::string_view kOf = "-of-", kDigits = "0123456789";
  constexpr size_t kMaxDigits = 6;
  const size_t of = name.rfind(kOf);
  if (of == std::string::npos || of == 0) return std::nullopt;
  const size_t before = name.find_last_not_of(kDigits, of - 1);
  const size_t first = before == std::string::npos ? 0 : before + 1, total = of + kOf.size();
  const size_t after = name.find_first_not_of(kDigits, total);
  if (after == std::string::npos || first == of || after == total || of - first > kMaxDigits ||
      after - total > kMaxDigits)
    return std::nullopt;
  NumberedName found{name.substr(0, first), name.substr(after), std::stoul(name.substr(first, of - first)),
                     std::stoul(name.substr(total, after - total)), of - first};
  return found.of(found.part) == name ? std::optional(found) : std::nullopt;
}

// Returns those of the names that number a fixed name, as "pytorch_model-00001-of-00002.bin" does. Returns
// all if there are none.
std::vector<std::string> numbering_fixed_name(const std::vector<std::string>& names) {
  for (const std::string_view fixed : kFixedNames) {
    const size_t dot = fixed.rfind('.');
    const std::string begin = std::string(fixed.substr(0, dot)) + "-";
    std::vector<std::string> found;
    for (const std::string& name : names)
      if (const std::optional<NumberedName> numbered = numbered_name(name);
          numbered && numbered->total > 1 && numbered->begin == begin && numbered->end == fixed.substr(dot))
        found.push_back(name);
    if (!found.empty()) return found;
  }
  return names;
}

// Returns the shards that torch.distributed.checkpoint wrote, one or more for each rank, if all names are
// theirs.
std::vector<Shard> dcp_shards(const std::vector<std::string>& names) {
  std::vector<Shard> shards;
  if (names.size() < 2 || !std::ranges::all_of(names, names_dcp_shard)) return shards;
  for (const std::string& name : names) shards.push_back({name, {}});
  return shards;
}

// Returns the shards that are numbered by their names, for a folder without an index. Returns none if the
// names are not such a set, and refuses a set with a missing shard.
std::vector<Shard> numbered_shards(const std::vector<std::string>& names, std::vector<std::string>& notes) {
  const std::optional<NumberedName> first = numbered_name(names[0]);
  if (!first || first->total < 2) return {};
  for (const std::string& name : names) {
    const std::optional<NumberedName> other = numbered_name(name);
    if (!other || other->of(1) != first->of(1)) return {};
  }
  std::vector<Shard> shards;
  for (size_t part = 1; part <= first->total; ++part) {
    shards.push_back({first->of(part), {}});
    if (!std::ranges::binary_search(names, shards.back().name))
      refuse(RefusalClass::StorageRef, names[0] + " is one of " + std::to_string(first->total) + " shards: " +
                                           shards.back().name + " is not there, and there is no index");
  }
  notes.push_back("there is no index: all " + std::to_string(first->total) + " shards that " + names[0] +
                  " is one of are read");
  return shards;
}

// One file, with the keys of an index next to it that names nothing else.
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
      chosen + " is read" + (stale ? ", as transformers does" : "") + ", but not what is next to it: ";
  constexpr size_t kMaxNamed = 8;
  for (size_t i = 0; i < std::min(unread.size(), kMaxNamed); ++i) text += (i > 0 ? ", " : "") + unread[i];
  if (unread.size() > kMaxNamed) text += " and " + std::to_string(unread.size() - kMaxNamed) + " more";
  notes.push_back(std::move(text));
}

// All sentence-transformers modules except the first are in separate folders.
void note_modules(const fs::path& directory, std::vector<std::string>& notes) {
  std::error_code error;
  if (!fs::is_regular_file(directory / "modules.json", error)) return;
  std::string names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (!entry.is_directory(error)) continue;
    for (const std::string& file : weight_files(entry.path()))
      names += (names.empty() ? "" : ", ") + entry.path().filename().string() + "/" + file;
  }
  if (!names.empty()) notes.push_back("modules.json names more modules, which qcts does not read: " + names);
}

// root is at or below REPOSITORY/snapshots/REVISION, where the hub's cache links to REPOSITORY/blobs.
bool is_blob_of(const fs::path& root, const fs::path& target) {
  for (fs::path at = root; at.has_relative_path(); at = at.parent_path()) {
    if (at.parent_path().filename() != "snapshots") continue;
    return target.parent_path() == at.parent_path().parent_path() / "blobs";
  }
  return false;
}

}  // namespace

bool names_one_of_several(const std::string& name) {
  const std::optional<NumberedName> numbered = numbered_name(name);
  return numbered && numbered->total > 1;
}

std::vector<std::string> names_of_set(const std::string& name) {
  std::vector<std::string> names;
  const std::optional<NumberedName> numbered = numbered_name(name);
  if (!numbered || numbered->total < 2) return names;
  for (size_t part = 1; part <= numbered->total; ++part) names.push_back(numbered->of(part));
  return names;
}

void refuse_unfinished(const fs::path& path) {
  for (const char* ending : {".aria2", ".part", ".crdownload", ".incomplete"}) {
    fs::path marker = path;
    marker += ending;
    if (fs::exists(marker))
      refuse(RefusalClass::Truncated, path.filename().string() +
                                          " is not complete: " + marker.filename().string() +
                                          " is next to it, as an unfinished download leaves it");
  }
}

bool names_weights(std::string_view name) {
  constexpr std::array<std::string_view, 6> kEndings = {".safetensors", ".bin",  ".pt",
                                                        ".pth",         ".ckpt", ".gguf"};
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
           "shard \"" + name + "\" leads out of the directory: pass the file itself");
  return directory / relative;
}

std::vector<Shard> find_shards(const fs::path& directory, std::vector<std::string>& notes) {
  std::vector<std::string> files = weight_files(directory);
  std::string chosen = fixed_name(files);
  std::vector<Shard> shards;
  if (chosen.empty()) {
    if (const std::string why = why_distributed(directory); !why.empty())
      refuse(RefusalClass::NotArchive, why);
    const std::vector<std::string> names = candidates(directory, files);
    shards = dcp_shards(names);
    if (shards.empty()) shards = numbered_shards(numbering_fixed_name(names), notes);
    if (shards.empty()) chosen = only_name(names);
  } else if (const std::string why = why_parts(files); !why.empty() && chosen == "consolidated.00.pth") {
    refuse(RefusalClass::NotArchive, why);
  }
  if (is_index(chosen))
    shards = shards_of_index(directory / chosen);
  else if (shards.empty())
    shards = own_index(directory, chosen, files);
  else
    chosen = shards[0].name;
  for (const Shard& shard : shards) {
    const fs::path path = shard_path(directory, shard.name);
    if (fs::exists(path)) {
      refuse_unfinished(path);
      continue;
    }
    refuse(RefusalClass::StorageRef,
           (is_index(chosen) ? chosen + " names the shard " : "") + shard.name +
               (is_index(chosen) ? ", which" : "") + " is " +
               (fs::is_symlink(path) ? "a link to a file that is not there" : "not there"));
  }
  if (is_index(chosen)) note_unnamed(chosen, shards, notes);
  note_unread(files, chosen, shards, notes);
  note_modules(directory, notes);
  return shards;
}

}  // namespace qcts
