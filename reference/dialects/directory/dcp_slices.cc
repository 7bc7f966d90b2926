// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/directory/dcp_slices.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

// {"l.weight": {"saved_offsets": [32, 0]}}: keeps the names of the tensors that do not begin at 0. There may
// be hundreds of thousands of names.
class OffsetHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return offset(value != 0); }
  bool number_unsigned(number_unsigned_t value) override { return offset(value != 0); }
  bool number_float(number_float_t, const string_t&) override { return offset(true); }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return deeper(); }
  bool end_object() override { return --depth_, true; }
  bool start_array(size_t) override { return deeper(); }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& text) override {
    if (depth_ == 1) name_ = text;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    refuse(RefusalClass::StJson, std::string(kDcpSharding) + " is not JSON");
  }

  std::set<std::string, std::less<>> take() { return std::move(names_); }

 private:
  bool offset(bool is_elsewhere) {
    if (is_elsewhere) names_.insert(name_);
    return true;
  }
  bool deeper() {
    if (++depth_ > 64)
      refuse(RefusalClass::LimitExceeded, std::string(kDcpSharding) + " is nested too deeply");
    return true;
  }

  size_t depth_ = 0;
  std::string name_;
  std::set<std::string, std::less<>> names_;
};

const std::string* sharding_of(const Safetensors& file) {
  const auto found = std::ranges::find(file.metadata, kDcpSharding,
                                       [](const auto& pair) { return std::string_view(pair.first); });
  return found == file.metadata.end() ? nullptr : &found->second;
}

[[noreturn]] void refuse_part(const std::string& tensor, const std::string& where) {
  refuse(RefusalClass::NotArchive,
         tensor + " is a rank's part of a tensor" + where +
             ": torch.distributed.checkpoint saved one part on each rank; consolidate them with its "
             "_consolidate_hf_safetensors.consolidate_safetensors_files");
}

std::string file_name(const Safetensors& file) { return fs::path(file.file->path()).filename().string(); }

}  // namespace

bool names_dcp_shard(std::string_view name) {
  const auto skip = [&](std::string_view word) {
    const bool begins = name.starts_with(word);
    if (begins) name.remove_prefix(word.size());
    return begins;
  };
  const auto skip_number = [&] {
    const size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(end);
    return end > 0;
  };
  return skip("shard-") && skip_number() && skip("-model-") && skip_number() && skip("-of-") &&
         skip_number() && name == ".safetensors";
}

void DcpSlices::add(const Safetensors& file, const std::string& name) {
  const std::string* sharding = sharding_of(file);
  if (sharding == nullptr) return;
  OffsetHandler handler;
  nlohmann::json::sax_parse(*sharding, &handler);
  const std::set<std::string, std::less<>> elsewhere = handler.take();
  for (const SafetensorsEntry& entry : file.entries) {
    const auto [first, fresh] = files_.try_emplace(entry.name, name);
    if (!fresh) refuse_part(entry.name, ", in " + first->second + " and " + name);
    if (elsewhere.contains(entry.name)) refuse_part(entry.name, ", and does not begin at its first element");
  }
}

void refuse_dcp_slices(const Safetensors& file, std::vector<std::string>& notes) {
  if (sharding_of(file) == nullptr) return;
  DcpSlices slices;
  slices.add(file, file_name(file));
  bool is_alone = true;
  std::error_code error;
  const fs::path path = file.file->path();
  if (names_dcp_shard(file_name(file)))
    for (const fs::directory_entry& entry :
         fs::directory_iterator(path.parent_path().empty() ? "." : path.parent_path(), error)) {
      const std::string name = entry.path().filename().string();
      if (!names_dcp_shard(name) || name == file_name(file)) continue;
      is_alone = false;
      std::shared_ptr<const Safetensors> other;
      try {
        other = std::make_shared<const Safetensors>(read_safetensors(MappedFile::open(entry.path()), {}));
      } catch (const std::exception&) {  // its own fault, which shows when it is named
        continue;
      }
      slices.add(*other, name);
    }
  if (is_alone && !file.entries.empty())
    notes.push_back(
        "a shard of torch.distributed.checkpoint, which does not say whether its tensors are whole: there is "
        "no other shard next to it");
}

}  // namespace qcts
