#include <algorithm>
#include <utility>

#include "reference/formats/byte_io.h"
#include "reference/formats/crc32.h"
#include "reference/formats/pickle_graph.h"
#include "reference/formats/serialization_id.h"
#include "reference/formats/torch_zip.h"
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

OutRecord out_record(const ZipRecord& record) {
  return {record.name, record.bytes, record.crc_written ? crc32_of(record.bytes) : 0};
}

// Records that still lie where the file has them.
bool is_unedited(const TorchZip& zip) {
  const auto whole = zip.file->bytes();
  return std::all_of(zip.records.begin(), zip.records.end(), [&](const ZipRecord& record) {
    return record.bytes.data() == whole.data() + record.data_offset;
  });
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

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
  bool same_pickle = true;
  for (const ZipRecord& record : zip.records) {
    before.push_back(out_record(record));
    after.push_back(before.back());
    if (record.name != "data.pkl") continue;
    pickle_bytes = pickle_for(zip, record.bytes, notes);
    same_pickle = equal(pickle_bytes, record.bytes);
    after.back().bytes = pickle_bytes;
    after.back().crc = record.crc_written ? crc32_of(pickle_bytes) : 0;
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
  if (same_pickle && is_unedited(zip) && !equal(out, zip.file->bytes())) {
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
  const auto add = [&](std::string name, std::span<const std::byte> bytes) {
    records.push_back({std::move(name), bytes, crc32_of(bytes)});
  };
  add("data.pkl", pickle_bytes);
  add(".format_version", as_bytes("1"));
  add(".storage_alignment", as_bytes("64"));
  add("byteorder", as_bytes("little"));
  for (size_t i = 0; i < storages.size(); ++i) add("data/" + std::to_string(i), storages[i]->bytes);
  add("version", as_bytes("3\n"));
  const std::string id = serialization_id(id_records(records));
  add(std::string(kIdRecord), as_bytes(id));
  return assemble(prefix, 64, records);
}

}  // namespace qcts
