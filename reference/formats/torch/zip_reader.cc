// SPDX-License-Identifier: BSD-3-Clause
// Reads the records that PyTorchStreamReader (caffe2/serialize/inline_container.cc) and
// torch/serialization.py use. An archive of torch.save 2.13 has, in file order: data.pkl, .format_version
// ("1"), .storage_alignment ("64"), byteorder ("little"), data/0 ... data/N-1, version ("3
// "), .data/serialization_id. Older writers omit byteorder and the records that begin with a dot. Offsets
// come only from the headers.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/crc32.h"
#include "reference/formats/torch/check.h"
#include "reference/formats/torch/numpy_array.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torch/zip.h"
#include "reference/formats/zip/directory.h"

namespace qcts {
namespace {

constexpr uint64_t kMaxAlignment = 65536;  // the padding's length has 16 bits

bool is_storage_record(std::string_view name) { return name.starts_with("data/"); }

const ZipRecord* find_record(const TorchZip& zip, std::string_view name) {
  for (const ZipRecord& record : zip.records) {
    if (record.name == name) return &record;
  }
  return nullptr;
}

std::optional<uint64_t> parse_digits(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void check_version(const TorchZip& zip) {
  const ZipRecord* record = find_record(zip, ".data/version");
  if (record == nullptr) record = find_record(zip, "version");
  if (record == nullptr) refuse(RefusalClass::Version, "record version is missing");
  std::string_view text = as_text(record->bytes);
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto version = parse_digits(text);
  if (!version || *version < 1 || *version > 10) {
    refuse(RefusalClass::Version, "record version is not a number from 1 to 10", record->data_offset);
  }
}

bool read_byte_order(const TorchZip& zip) {
  const ZipRecord* record = find_record(zip, "byteorder");
  if (record == nullptr || as_text(record->bytes) == "little") return false;
  if (as_text(record->bytes) == "big") return true;
  refuse(RefusalClass::ByteOrder, "record byteorder is neither little nor big", record->data_offset);
}

// Finds records below data/ by key. torch.save writes them in the order of the pickle; for other files this
// builds a table.
class StorageRecords {
 public:
  explicit StorageRecords(const TorchZip& zip) : zip_(zip) {}

  const ZipRecord* find(std::string_view key) {
    while (next_ < zip_.records.size() && !is_storage_record(zip_.records[next_].name)) ++next_;
    if (next_ < zip_.records.size() && key_of(zip_.records[next_]) == key) return &zip_.records[next_++];
    if (table_.empty()) make_table();
    const auto found = table_.find(key);
    return found == table_.end() ? nullptr : found->second;
  }

 private:
  static std::string_view key_of(const ZipRecord& record) { return std::string_view(record.name).substr(5); }
  void make_table() {
    for (const ZipRecord& record : zip_.records)
      if (is_storage_record(record.name)) table_.emplace(key_of(record), &record);
  }

  const TorchZip& zip_;
  size_t next_ = 0;
  std::unordered_map<std::string_view, const ZipRecord*> table_;
};

// Returns the archive's alignment; the padding of every record must agree with it.
uint32_t read_alignment(const TorchZip& zip, const ZipDirectory& directory) {
  if (const ZipRecord* format = find_record(zip, ".format_version")) {
    if (!parse_digits(as_text(format->bytes))) {
      refuse(RefusalClass::ZipStructure, "record .format_version is not a number", format->data_offset);
    }
  }
  const ZipRecord* record = find_record(zip, ".storage_alignment");
  if (record == nullptr) return 64;
  const auto alignment = parse_digits(as_text(record->bytes));
  if (!alignment || *alignment < 1 || *alignment > kMaxAlignment) {
    refuse(RefusalClass::ZipStructure, "record .storage_alignment is not a number from 1 to 65536",
           record->data_offset);
  }
  for (const ZipEntry& entry : directory.entries) {
    if (entry.padding_bytes && (entry.data_offset % *alignment != 0 || *entry.padding_bytes >= *alignment)) {
      refuse(RefusalClass::ZipStructure,
             "entry " + std::string(entry.name) + " is not aligned as .storage_alignment says",
             entry.header_offset);
    }
  }
  return static_cast<uint32_t>(*alignment);
}

void list_records(TorchZip& zip, const ZipDirectory& directory) {
  zip.records.reserve(directory.entries.size());
  for (const ZipEntry& entry : directory.entries) {
    ZipRecord record;
    record.name = entry.name.substr(directory.prefix.size() + 1);
    record.bytes = zip.file->bytes().subspan(entry.data_offset, entry.size);
    record.header_offset = entry.header_offset;
    record.data_offset = entry.data_offset;
    record.recorded_bytes = entry.size;
    record.recorded_crc = entry.crc;
    zip.records.push_back(std::move(record));
  }
  if (find_record(zip, "data.pkl") != nullptr) return;
  for (const ZipRecord& record : zip.records) {
    if (record.name.size() == 8 &&
        std::equal(record.name.begin(), record.name.end(), "data.pkl",
                   [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; })) {
      refuse(RefusalClass::EntryName, "entry " + record.name + " is in the place of data.pkl",
             record.header_offset);
    }
  }
  refuse(RefusalClass::ZipStructure, "record data.pkl is missing");
}

// Finds records without CRCs: set_crc32_options(False) writes 0 for every record, skip_data for every
// storage. A single 0 among real CRCs is damage.
void find_unwritten_crcs(TorchZip& zip) {
  bool any = false, any_storage = false;
  for (const ZipRecord& record : zip.records) {
    if (record.recorded_crc == 0 || record.bytes.empty()) continue;
    any = true;
    any_storage |= is_storage_record(record.name);
  }
  for (ZipRecord& record : zip.records) {
    record.crc_written = any && (any_storage || !is_storage_record(record.name));
  }
}

void check_crc(const TorchZip& zip, const ZipRecord& record) {
  if (!record.crc_written) return;
  const uint32_t computed = crc32_of(record.bytes);
  const uint32_t recorded = record.recorded_crc;
  if (computed == recorded) return;
  std::string what = "record " + record.name;
  if (is_storage_record(record.name) && zip.root != nullptr) {
    const std::string path = path_to_storage(zip, record.name.substr(5));
    if (!path.empty()) what += " (tensor " + path + ")";
  }
  char text[64];
  std::snprintf(text, sizeof text, ": recorded 0x%08x, computed 0x%08x", recorded, computed);
  refuse(RefusalClass::CrcMismatch, what + text, record.data_offset);
}

}  // namespace

void resolve_storages(TorchZip& zip, const TorchOptions& options) {
  StorageRecords records(zip);
  zip.storage_index.reserve(zip.records.size());
  bind_storages(zip, options, zip.file, [&](const StorageId& id, const pickle::Ref& node) {
    const ZipRecord* record = records.find(id.key);
    if (record == nullptr) {
      refuse(RefusalClass::StorageRef, "data.pkl: record data/" + id.key + " is missing", node->offset);
    }
    return record->bytes;
  });
}

TorchZip read_torch_zip(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options) {
  TorchZip zip;
  zip.file = std::move(file);
  zip.limits = options.limits;
  const ZipDirectory directory = read_zip_directory(*zip.file, options.limits, options.lenient);
  zip.prefix = directory.prefix;
  list_records(zip, directory);
  check_version(zip);
  zip.big_endian = read_byte_order(zip);
  zip.storage_alignment_bytes = read_alignment(zip, directory);
  find_unwritten_crcs(zip);
  for (const ZipRecord& record : zip.records) {
    if (!is_storage_record(record.name) && options.crc != CrcPolicy::ignore) check_crc(zip, record);
  }
  pickle::ReadCost cost;
  zip.root = pickle::read(find_record(zip, "data.pkl")->bytes,
                          {.limits = options.limits, .allow = options.allow, .cycles = true, .cost = &cost});
  zip.locations = map_locations(zip.root, options.map_locations);
  resolve_storages(zip, options);
  for (const ZipRecord& record : zip.records) {
    if (is_storage_record(record.name) && options.crc == CrcPolicy::verify) check_crc(zip, record);
  }
  if (zip.big_endian) swap_big_endian(zip);
  cost.heap_bytes += decode_arrays(zip, cost.pickle_bytes, options.limits);
  check_tensors(zip, options.limits);
  uint64_t directory_bytes = 0;
  for (const ZipEntry& entry : directory.entries) directory_bytes += kZipCentralBytes + entry.name.size();
  zip.budget = budget_of(zip, cost, zip.records.size(), directory_bytes, zip.file->bytes().size());
  return zip;
}

}  // namespace qcts
