// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/crc32.h"
#include "reference/formats/io/inflate.h"
#include "reference/formats/torch/check.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torchscript/internal.h"
#include "reference/formats/torchscript/torchscript.h"
#include "reference/formats/zip/directory.h"

namespace qcts {
namespace {

using pickle::Kind;

// Memory of an entry with its ScriptRecord and table slot; of a ZipRecord in a list that grows by doubling.
constexpr uint64_t kScriptEntryBytes = sizeof(ZipEntry) + sizeof(ScriptRecord) + 72,
                   kRecordBytes = 2 * sizeof(ZipRecord), kStorageBytes = sizeof(Storage) + 112;

class ScriptReader {
 public:
  ScriptReader(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options) : options_(options) {
    script_.file = std::move(file);
  }

  TorchScript run() {
    directory_ = read_zip_directory(*script_.file, options_.limits, options_.lenient, ZipKind::torchscript);
    script_.prefix = directory_.prefix;
    const size_t folder_bytes = directory_.prefix.size() + 1;
    uint64_t directory_bytes = 0;
    for (const ZipEntry& entry : directory_.entries) directory_bytes += kZipCentralBytes + entry.name.size();
    script_.budget = ReadBudget(directory_bytes, script_.file->bytes().size());
    script_.budget.take_bytes(kScriptEntryBytes * directory_.entries.size());
    script_.records.reserve(directory_.entries.size());
    for (const ZipEntry& entry : directory_.entries) {
      const std::string_view name = entry.name.substr(folder_bytes);
      script_.budget.take_bytes(text_block_bytes(name.size()));
      script_.records.push_back({std::string(name), entry.size, entry.stored_size});
      entries_.emplace(name, &entry);
      const bool written = entry.crc != 0 && entry.size != 0;
      any_crcs_ |= written;
      storage_crcs_ |= written && is_storage(name);
    }
    read_version();
    read_code();
    const bool big_endian = read_byte_order();
    check_stored(false);
    read_pickle(script_.program, "data.pkl", "data/", big_endian);
    read_pickle(script_.constants, "constants.pkl", "constants/", big_endian);
    check_stored(true);
    check_roots();
    return std::move(script_);
  }

 private:
  std::span<const std::byte> stored(const ZipEntry& entry) const {
    return script_.file->bytes().subspan(entry.data_offset, entry.stored_size);
  }

  const ZipEntry* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second;
  }

  const ZipEntry& need(std::string_view name) const {
    const ZipEntry* entry = find(name);
    if (entry == nullptr)
      refuse(RefusalClass::ZipStructure,
             "record " + std::string(name) + " of a TorchScript archive is missing");
    return *entry;
  }

  // .data/version takes precedence when present (caffe2/serialize/inline_container.cc,
  // PyTorchStreamReader::init).
  void read_version() {
    script_.version_record = find(".data/version") != nullptr ? ".data/version" : "version";
    const ZipEntry* entry = find(script_.version_record);
    if (entry == nullptr) refuse(RefusalClass::Version, "record version is missing");
    std::string_view text = as_text(stored(*entry));
    if (text.ends_with('\n')) text.remove_suffix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), script_.version);
    const bool number = error == std::errc() && end == text.data() + text.size();
    if (!number || script_.version < 1)
      refuse(RefusalClass::Version, "record " + script_.version_record + " is not an operator set number",
             entry->data_offset);
    if (script_.version > kNewestOperatorSet)
      refuse(RefusalClass::Version,
             "operator set " + std::to_string(script_.version) + " is newer than " +
                 std::to_string(kNewestOperatorSet),
             entry->data_offset);
  }

  bool read_byte_order() const {
    const ZipEntry* entry = find("byteorder");
    if (entry == nullptr || as_text(stored(*entry)) == "little") return false;
    if (as_text(stored(*entry)) == "big") return true;
    refuse(RefusalClass::ByteOrder, "record byteorder is neither little nor big", entry->data_offset);
  }

  void check_crc(const ZipEntry& entry, std::span<const std::byte> bytes) const {
    const std::string_view name = entry.name.substr(directory_.prefix.size() + 1);
    if (options_.crc != CrcPolicy::verify || !(is_storage(name) ? storage_crcs_ : any_crcs_)) return;
    const uint32_t computed = crc32_of(bytes);
    if (computed == entry.crc) return;
    char text[64];
    std::snprintf(text, sizeof text, ": recorded 0x%08x, computed 0x%08x", entry.crc, computed);
    refuse(RefusalClass::CrcMismatch, "record " + std::string(entry.name) + text, entry.data_offset);
  }

  static bool is_storage(std::string_view name) {
    return name.starts_with("data/") || name.starts_with("constants/");
  }

  void check_stored(bool storages) const {
    for (const auto& [name, entry] : entries_)
      if (entry->method == 0 && is_storage(name) == storages) check_crc(*entry, stored(*entry));
  }

  // Converts "code/__torch__/torch/nn/modules/linear.py" to "__torch__.torch.nn.modules.linear"; empty for
  // debug records.
  static std::string module_of(std::string_view name, uint64_t offset) {
    constexpr std::string_view kRoot = "code/", kSource = ".py", kDebug = ".py.debug_pkl";
    const std::string_view path = name.substr(kRoot.size());
    const bool debug = path.ends_with(kDebug);
    const size_t ending = debug ? kDebug.size() : kSource.size();
    if ((!debug && !path.ends_with(kSource)) ||
        (!path.starts_with("__torch__/") && !path.starts_with("__torch__.py")))
      refuse(RefusalClass::EntryName, "entry " + std::string(name) + " is not a source below code/__torch__",
             offset);
    std::string module(path.substr(0, path.size() - ending));
    std::ranges::replace(module, '/', '.');
    return debug ? "" : module;
  }

  void read_code() {
    uint64_t total = 0;
    for (const ZipEntry& entry : directory_.entries) {
      const std::string name(entry.name.substr(directory_.prefix.size() + 1));
      if (!name.starts_with("code/")) continue;
      const std::string module = module_of(name, entry.header_offset);
      if (entry.size > options_.limits.script_code_bytes - std::min(total, options_.limits.script_code_bytes))
        refuse(RefusalClass::LimitExceeded,
               "the code has more than " + std::to_string(options_.limits.script_code_bytes) + " bytes",
               entry.header_offset);
      total += entry.size;
      std::vector<std::byte> inflated;
      std::span<const std::byte> bytes = stored(entry);
      if (entry.method != 0) {
        script_.budget.take_bytes(entry.size);
        inflated = inflate(bytes, entry.size, "entry " + std::string(entry.name), entry.data_offset);
        bytes = inflated;
      }
      check_crc(entry, bytes);
      if (!module.empty()) read_script_classes(as_text(bytes), module, script_.classes, script_.budget);
      script_.budget.give_back_bytes(inflated.size());
    }
  }

  // Reads a pickle whose storages are below `folder`; resolve_storages expects them below data/.
  void read_pickle(TorchZip& zip, const std::string& name, const std::string& folder, bool big_endian) {
    const ZipEntry& entry = need(name);
    zip.file = script_.file;
    zip.prefix = script_.prefix;
    zip.limits = options_.limits;
    zip.big_endian = big_endian;
    for (const ZipEntry& other : directory_.entries) {
      const std::string_view record = std::string_view(other.name).substr(directory_.prefix.size() + 1);
      if (!record.starts_with(folder)) continue;
      script_.budget.take_bytes(kRecordBytes + text_block_bytes(record.size()));
      zip.records.push_back({.name = "data/" + std::string(record.substr(folder.size())),
                             .bytes = stored(other),
                             .header_offset = other.header_offset,
                             .data_offset = other.data_offset,
                             .recorded_bytes = other.size,
                             .recorded_crc = other.crc});
    }
    std::vector<std::string> allow = script_globals(script_.classes);
    allow.insert(allow.end(), options_.allow.begin(), options_.allow.end());
    try {
      pickle::ReadCost cost;
      Limits limits = options_.limits;
      limits.pickle_heap_bytes = std::min(limits.pickle_heap_bytes, script_.budget.bytes_left());
      zip.root = pickle::read(stored(entry), {.limits = limits, .allow = allow, .cost = &cost});
      zip.locations = map_locations(zip.root, options_.map_locations);
      check_script_values(zip.root, script_.classes, options_.allow, "data.pkl");
      resolve_storages(zip, options_);
      if (big_endian) swap_big_endian(zip);
      check_tensors(zip, options_.limits);
      script_.budget.grant_bytes(64 * cost.opcodes + cost.pickle_bytes);
      script_.budget.take_bytes(cost.heap_bytes + kStorageBytes * zip.storages.size());
    } catch (const Refused& refused) {
      refuse_in(refused.refusal(), name, folder);
    }
    if (folder == "data/") return;
    for (auto& storage : zip.storages) {
      auto named = std::make_shared<Storage>(*storage);
      named->key = folder + named->key;
      storage = std::move(named);
    }
  }

  // Rethrows the refusal with the names of the pickle and its folder.
  [[noreturn]] static void refuse_in(Refusal refusal, const std::string& name, const std::string& folder) {
    if (refusal.detail.starts_with("data.pkl")) refusal.detail.replace(0, 8, name);
    if (const size_t at = refusal.detail.find("record data/"); at != std::string::npos && folder != "data/")
      refusal.detail.replace(at + 7, 5, folder);
    throw Refused(std::move(refusal));
  }

  void check_roots() const {
    const pickle::Ref& root = script_.program.root;
    const ScriptClass* cls = script_class_of(script_.classes, root);
    if (root->kind != Kind::new_object || cls == nullptr || cls->base != "Module")
      refuse(RefusalClass::PickleType, "data.pkl: the root of a TorchScript archive is not a module",
             root->offset);
    if (script_.constants.root->kind != Kind::tuple)
      refuse(RefusalClass::PickleType, "constants.pkl: the constants are not a tuple",
             script_.constants.root->offset);
  }

  const TorchZipOptions& options_;
  // A writer may leave out the CRCs of all records or of all storages, and then records 0. A single 0 is
  // damage.
  bool any_crcs_ = false, storage_crcs_ = false;
  TorchScript script_;
  ZipDirectory directory_;
  // By name without the prefix. Sorted, because a file can choose names that collide in any hash table.
  std::map<std::string_view, const ZipEntry*> entries_;
};

}  // namespace

TorchScript read_torchscript(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options) {
  return ScriptReader(std::move(file), options).run();
}

}  // namespace qcts
