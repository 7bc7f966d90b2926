// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/crc32.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/serialization_id.h"
#include "reference/formats/torch/writer.h"
#include "reference/formats/torch/zip.h"
#include "reference/formats/zip/directory.h"
#include "reference/formats/zip/writer.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

constexpr std::string_view kIdRecord = ".data/serialization_id";

struct OutRecord {
  std::string name;
  std::span<const std::byte> bytes;
  uint32_t crc = 0;  // as written
};

std::vector<IdRecord> id_records(const std::vector<OutRecord>& records) {
  std::vector<IdRecord> result;
  for (const OutRecord& record : records) {
    if (record.name == kIdRecord) break;
    result.push_back({record.name, record.bytes, record.crc});
  }
  return result;
}

void assemble(const std::string& prefix, uint32_t alignment, const std::vector<OutRecord>& records,
              ByteSink& out) {
  ZipWriter writer(out, prefix, alignment);
  for (const OutRecord& record : records) writer.add(record.name, record.bytes, record.crc);
  writer.finish();
}

std::span<const std::byte> stored_bytes(const TorchZip& zip, const ZipRecord& record) {
  return zip.file->bytes().subspan(record.data_offset, record.recorded_bytes);
}

bool is_stored(const TorchZip& zip, const ZipRecord& record) {
  const auto stored = stored_bytes(zip, record);
  return record.bytes.data() == stored.data() && record.bytes.size() == stored.size();
}

// Returns the records to write in file order; an edit drops or renames some.
std::vector<OutRecord> stored_records(const TorchZip& zip, const ZipDirectory& directory) {
  std::vector<OutRecord> records;
  for (const ZipEntry& entry : directory.entries)
    records.push_back({std::string(entry.name.substr(directory.prefix.size() + 1)),
                       zip.file->bytes().subspan(entry.data_offset, entry.size), entry.crc});
  return records;
}

// Does the archive still have the names of its file?
bool has_stored_names(const TorchZip& zip, const ZipDirectory& directory) {
  return directory.prefix == zip.prefix &&
         std::equal(directory.entries.begin(), directory.entries.end(), zip.records.begin(),
                    zip.records.end(), [&](const ZipEntry& entry, const ZipRecord& record) {
                      return entry.name == zip.prefix + "/" + record.name &&
                             entry.data_offset == record.data_offset;
                    });
}

OutRecord new_record(const ZipRecord& record, std::span<const std::byte> bytes) {
  return {record.name, bytes, record.crc_written ? crc32_of(bytes) : 0};
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace

std::vector<std::byte> pickle_or_stored(const Ref& root, std::span<const std::byte> stored,
                                        const Limits& limits, bool& kept) {
  std::vector<std::byte> written = pickle::write(root);
  if (stored.size() > 1) written[1] = stored[1];  // protocol 3 spells the same values as protocol 2
  if (equal(written, stored)) return written;
  std::vector<std::string> allow;
  pickle::for_each_node(root, [&](const Ref& node) {
    if (node->kind != Kind::global) return;
    std::string name = node->text;
    std::replace(name.begin(), name.end(), ' ', '.');
    allow.push_back(std::move(name));
  });
  std::vector<std::byte> again = pickle::write(
      pickle::read(stored, {.limits = limits, .allow = allow, .module_ids = true, .cycles = true}));
  again[1] = stored[1];
  if (!equal(again, written)) return written;
  kept = true;
  return {stored.begin(), stored.end()};
}

void rebuild_torch_zip(const TorchZip& zip, ByteSink& out, RebuildNotes* notes_out) {
  RebuildNotes notes;
  std::vector<std::byte> pickle_bytes;
  std::string id;
  const ZipDirectory directory = read_zip_directory(*zip.file, zip.limits, true);
  std::vector<OutRecord> after;
  bool edited = !has_stored_names(zip, directory);
  for (const ZipRecord& record : zip.records) {
    after.push_back(is_stored(zip, record)
                        ? OutRecord{record.name, stored_bytes(zip, record), record.recorded_crc}
                        : new_record(record, record.bytes));
    edited |= !is_stored(zip, record);
    if (record.name != "data.pkl") continue;
    pickle_bytes = pickle_or_stored(zip.root, stored_bytes(zip, record), zip.limits, notes.kept_pickle);
    edited |= !equal(pickle_bytes, stored_bytes(zip, record));
    after.back() = new_record(record, pickle_bytes);
  }
  for (OutRecord& record : after) {
    if (record.name != kIdRecord) continue;
    // An edited archive gets a new id, whoever wrote the old one.
    notes.kept_serialization_id =
        !edited && as_text(record.bytes) != serialization_id(id_records(stored_records(zip, directory)));
    if (notes.kept_serialization_id) break;
    id = serialization_id(id_records(after));
    record.bytes = as_bytes(id);
    if (record.crc != 0) record.crc = crc32_of(record.bytes);
  }
  if (!edited) {
    CompareSink same(zip.file->bytes());
    assemble(zip.prefix, zip.storage_alignment_bytes, after, same);
    notes.kept_file = !same.equal();
  }
  if (notes.kept_file)
    out.write(zip.file->bytes());
  else
    assemble(zip.prefix, zip.storage_alignment_bytes, after, out);
  if (notes_out != nullptr) *notes_out = notes;
}

std::vector<std::byte> rebuild_torch_zip(const TorchZip& zip, RebuildNotes* notes) {
  VectorSink out(zip.file->bytes().size());
  rebuild_torch_zip(zip, out, notes);
  return std::move(out).take();
}

void write_torch_zip(const std::string& prefix, const Ref& root,
                     const std::vector<std::shared_ptr<const Storage>>& storages, ByteSink& out) {
  // Python shares the parts of persistent ids: "storage" and "cpu" are constants, a key is one string per
  // storage.
  pickle::WriteOptions options;
  options.module_ids = false;
  pickle::for_each_node(root, [&](const Ref& node) {
    if (node->kind != Kind::persistent || node->items.at(0)->kind != Kind::tuple) return;
    for (const Ref& part : node->items[0]->items) {
      if (part->kind == Kind::string) options.shared_strings.insert(part.get());
    }
  });
  const std::vector<std::byte> pickle_bytes = pickle::write(root, options);
  std::vector<std::span<const std::byte>> storage_bytes;
  for (const auto& storage : storages) storage_bytes.push_back(storage->bytes);
  Crc32Ahead storage_crcs(storage_bytes);
  ZipWriter writer(out, prefix, 64);
  std::vector<IdRecord> records;
  const auto add = [&](std::string name, std::span<const std::byte> bytes,
                       const std::function<uint32_t()>& crc) {
    const uint32_t written = writer.add(name, bytes, crc);
    records.push_back({std::move(name), bytes, written});
  };
  const auto add_small = [&](const char* name, std::span<const std::byte> bytes) {
    add(name, bytes, [&] { return crc32_of(bytes); });
  };
  add_small("data.pkl", pickle_bytes);
  add_small(".format_version", as_bytes("1"));
  add_small(".storage_alignment", as_bytes("64"));
  add_small("byteorder", as_bytes("little"));
  for (size_t i = 0; i < storages.size(); ++i)
    add("data/" + std::to_string(i), storage_bytes[i], [&] { return storage_crcs.of(i); });
  add_small("version", as_bytes("3\n"));
  const std::string id = serialization_id(records);
  writer.add(std::string(kIdRecord), as_bytes(id), crc32_of(as_bytes(id)));
  writer.finish();
}

std::vector<std::byte> write_torch_zip(const std::string& prefix, const Ref& root,
                                       const std::vector<std::shared_ptr<const Storage>>& storages) {
  VectorSink out;
  write_torch_zip(prefix, root, storages, out);
  return std::move(out).take();
}

}  // namespace qcts
