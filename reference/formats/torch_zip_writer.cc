#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/formats/byte_io.h"
#include "reference/formats/crc32.h"
#include "reference/formats/pickle_graph.h"
#include "reference/formats/serialization_id.h"
#include "reference/formats/torch_zip.h"
#include "reference/formats/zip_directory.h"
#include "reference/formats/zip_writer.h"

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

std::vector<std::byte> assemble(const std::string& prefix, uint32_t alignment,
                                const std::vector<OutRecord>& records) {
  uint64_t expected = 4096;
  for (const OutRecord& record : records)
    expected += record.bytes.size() + 2 * record.name.size() + alignment + 256;
  ZipWriter writer(prefix, alignment, expected);
  for (const OutRecord& record : records) writer.add(record.name, record.bytes, record.crc);
  return std::move(writer).finish();
}

std::span<const std::byte> stored_bytes(const TorchZip& zip, const ZipRecord& record) {
  return zip.file->bytes().subspan(record.data_offset, record.recorded_bytes);
}

bool is_stored(const TorchZip& zip, const ZipRecord& record) {
  const auto stored = stored_bytes(zip, record);
  return record.bytes.data() == stored.data() && record.bytes.size() == stored.size();
}

// The archive still has the names that its file has.
bool has_stored_names(const TorchZip& zip) {
  const ZipDirectory directory = read_zip_directory(zip.file->bytes(), zip.limits, true);
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

// data.pkl for the graph: written anew, unless that changes the spelling but not the graph of what another
// pickler wrote.
std::vector<std::byte> pickle_for(const TorchZip& zip, std::span<const std::byte> stored,
                                  RebuildNotes& notes) {
  std::vector<std::byte> written = pickle::write(zip.root);
  if (equal(written, stored)) return written;
  std::vector<std::string> allow;
  pickle::for_each_node(zip.root, [&](const Ref& node) {
    if (node->kind != Kind::global) return;
    std::string name = node->text;
    std::replace(name.begin(), name.end(), ' ', '.');
    allow.push_back(std::move(name));
  });
  if (!equal(pickle::write(pickle::read(stored, {zip.limits, allow})), written)) return written;
  notes.kept_pickle = true;
  return {stored.begin(), stored.end()};
}

}  // namespace

std::vector<std::byte> rebuild_torch_zip(const TorchZip& zip, RebuildNotes* notes_out) {
  RebuildNotes notes;
  std::vector<std::byte> pickle_bytes;
  std::string id;
  std::vector<OutRecord> before, after;
  bool edited = false;
  for (const ZipRecord& record : zip.records) {
    before.push_back({record.name, stored_bytes(zip, record), record.recorded_crc});
    after.push_back(is_stored(zip, record) ? before.back() : new_record(record, record.bytes));
    edited |= !is_stored(zip, record);
    if (record.name != "data.pkl") continue;
    pickle_bytes = pickle_for(zip, stored_bytes(zip, record), notes);
    edited |= !equal(pickle_bytes, stored_bytes(zip, record));
    after.back() = new_record(record, pickle_bytes);
  }
  for (OutRecord& record : after) {
    if (record.name != kIdRecord) continue;
    notes.kept_serialization_id = as_text(record.bytes) != serialization_id(id_records(before));
    if (notes.kept_serialization_id) break;
    id = serialization_id(id_records(after));
    record.bytes = as_bytes(id);
    if (record.crc != 0) record.crc = crc32_of(record.bytes);
  }
  std::vector<std::byte> out = assemble(zip.prefix, zip.storage_alignment_bytes, after);
  if (!edited && !equal(out, zip.file->bytes()) && has_stored_names(zip)) {
    notes.kept_file = true;
    out.assign(zip.file->bytes().begin(), zip.file->bytes().end());
  }
  if (notes_out != nullptr) *notes_out = notes;
  return out;
}

std::vector<std::byte> write_torch_zip(const std::string& prefix, const Ref& root,
                                       const std::vector<std::shared_ptr<const Storage>>& storages) {
  // In Python the parts of a persistent id are shared: "storage" and "cpu" are constants, a key is one string
  // a storage.
  pickle::WriteOptions options;
  pickle::for_each_node(root, [&](const Ref& node) {
    if (node->kind != Kind::persistent || node->items.at(0)->kind != Kind::tuple) return;
    for (const Ref& part : node->items[0]->items) {
      if (part->kind == Kind::string) options.shared_strings.insert(part.get());
    }
  });
  const std::vector<std::byte> pickle_bytes = pickle::write(root, options);
  std::vector<OutRecord> records;
  std::vector<std::span<const std::byte>> storage_bytes;
  for (const auto& storage : storages) storage_bytes.push_back(storage->bytes);
  const std::vector<uint32_t> storage_crcs = crc32_of_each(storage_bytes);
  const auto add = [&](std::string name, std::span<const std::byte> bytes) {
    records.push_back({std::move(name), bytes, crc32_of(bytes)});
  };
  add("data.pkl", pickle_bytes);
  add(".format_version", as_bytes("1"));
  add(".storage_alignment", as_bytes("64"));
  add("byteorder", as_bytes("little"));
  for (size_t i = 0; i < storages.size(); ++i)
    records.push_back({"data/" + std::to_string(i), storage_bytes[i], storage_crcs[i]});
  add("version", as_bytes("3\n"));
  const std::string id = serialization_id(id_records(records));
  add(std::string(kIdRecord), as_bytes(id));
  return assemble(prefix, 64, records);
}

}  // namespace qcts
