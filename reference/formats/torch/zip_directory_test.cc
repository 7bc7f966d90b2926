// SPDX-License-Identifier: BSD-3-Clause
// Tests damaged and hostile archives. Each case edits a small archive laid out like torch.save's; its number
// is the row of the malformed corpus.
#include "reference/formats/zip/directory.h"

#include <gtest/gtest.h>

#include <functional>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/crc32.h"
#include "reference/formats/torch/testing.h"
#include "reference/formats/zip/writer.h"

namespace qcts {
namespace {

using testing::Bytes;
using testing::outcome;
using testing::small_archive;
using testing::to_bytes;

// An archive whose fields can be found and overwritten.
struct Editable {
  Bytes bytes;

  uint64_t end() const { return bytes.size() - 22; }
  uint64_t end64() const { return bytes.size() - 98; }
  uint64_t locator() const { return bytes.size() - 42; }
  template <typename T>
  void put(uint64_t at, T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  }
  template <typename T>
  T get(uint64_t at) const {
    return load_le<T>(bytes, at);
  }
  // Returns the position of a record's central directory entry.
  uint64_t central(const std::string& name) const {
    uint64_t at = get<uint64_t>(end64() + 48);
    while (get<uint32_t>(at) == 0x02014b50) {
      const uint64_t length = get<uint16_t>(at + 28);
      if (as_text(std::span(bytes).subspan(at + 46, length)) == "archive/" + name) return at;
      at += 46 + length + get<uint16_t>(at + 30);
    }
    throw std::logic_error("no entry " + name);
  }
  uint64_t local(const std::string& name) const { return get<uint32_t>(central(name) + 42); }
  uint64_t data(const std::string& name) const {
    const uint64_t at = local(name);
    return at + 30 + get<uint16_t>(at + 26) + get<uint16_t>(at + 28);
  }
  uint64_t size(const std::string& name) const { return get<uint32_t>(central(name) + 24); }
  void put_in_name(const std::string& name, uint64_t position, char letter) {
    const uint64_t at = central(name), header = local(name);
    put<uint8_t>(at + 46 + position, static_cast<uint8_t>(letter));
    put<uint8_t>(header + 30 + position, static_cast<uint8_t>(letter));
  }
  void rename(const std::string& name, const std::string& to, bool in_local = true) {
    const uint64_t at = central(name), header = local(name);
    const Bytes letters = to_bytes("archive/" + to);
    std::copy(letters.begin(), letters.end(), bytes.begin() + static_cast<ptrdiff_t>(at + 46));
    if (in_local)
      std::copy(letters.begin(), letters.end(), bytes.begin() + static_cast<ptrdiff_t>(header + 30));
  }
};

struct ZipRecord {
  std::string name;
  Bytes data;
};

// Makes an archive of any records, with correct CRCs.
Bytes archive_of(const std::vector<ZipRecord>& records, uint32_t alignment = 64,
                 const std::string& prefix = "archive") {
  VectorSink out;
  ZipWriter writer(out, prefix, alignment);
  for (const ZipRecord& record : records) writer.add(record.name, record.data, crc32_of(record.data));
  writer.finish();
  return std::move(out).take();
}

// Returns small_archive() with one record replaced, added (an unknown name) or removed (an empty optional).
Bytes with_record(const std::string& name, std::optional<Bytes> data, bool first = false) {
  const TorchZip zip = read_torch_zip(MappedFile::from_bytes(small_archive()));
  std::vector<ZipRecord> records;
  bool seen = false;
  for (const auto& record : zip.records) {
    if (record.name != name) {
      records.push_back({record.name, {record.bytes.begin(), record.bytes.end()}});
    } else {
      seen = true;
      if (data) records.push_back({name, *data});
    }
  }
  if (!seen && data) records.insert(first ? records.begin() : records.end() - 2, {name, *data});
  return archive_of(records);
}

struct ZipCase {
  std::string name;
  std::string required;
  std::function<Bytes()> make;
  bool lenient = false;
};

void PrintTo(const ZipCase& c, std::ostream* out) { *out << c.name; }

ZipCase edit(std::string name, std::string required, std::function<void(Editable&)> change) {
  return {std::move(name), std::move(required), [change = std::move(change)] {
            Editable archive{small_archive()};
            change(archive);
            return archive.bytes;
          }};
}

// Overwrites one field, `offset` bytes into a part of the archive, or into its record data/0.
template <typename T>
ZipCase put_field(std::string name, std::string required, uint64_t (Editable::*part)() const, uint64_t offset,
                  T value) {
  return edit(std::move(name), std::move(required),
              [=](Editable& a) { a.put<T>((a.*part)() + offset, value); });
}
template <typename T>
ZipCase put_field(std::string name, std::string required,
                  uint64_t (Editable::*part)(const std::string&) const, uint64_t offset, T value) {
  return edit(std::move(name), std::move(required),
              [=](Editable& a) { a.put<T>((a.*part)("data/0") + offset, value); });
}

ZipCase record(std::string name, std::string required, std::string entry, std::optional<std::string> data) {
  return {std::move(name), std::move(required), [entry = std::move(entry), data = std::move(data)] {
            return with_record(entry, data ? std::optional(to_bytes(*data)) : std::nullopt);
          }};
}

Bytes prefixed(const std::string& prefix) {
  Bytes bytes = to_bytes(prefix);
  append(bytes, small_archive());
  return bytes;
}

Bytes plain_zip() {  // without the ZIP64 end records
  Bytes bytes = small_archive();
  bytes.erase(bytes.end() - 98, bytes.end() - 22);
  return bytes;
}

std::vector<ZipCase> damaged_ends() {
  return {
      {"z00_intact", "accepted", small_archive},
      edit("z01_truncated_500", "Truncated", [](Editable& a) { a.bytes.resize(500); }),
      edit("z01_truncated_last_byte", "Truncated", [](Editable& a) { a.bytes.pop_back(); }),
      edit("z01_end_record_removed", "Truncated", [](Editable& a) { a.bytes.resize(a.end()); }),
      {"z02_empty", "NotArchive", [] { return Bytes(); }},
      {"z02_four_bytes", "NotArchive", [] { return to_bytes("PK\3\4"); }},
      {"z03_garbage_before", "NotArchive", [] { return prefixed("garbage!"); }},
      {"z04_prefix_that_looks_right", "ZipStructure",
       [] { return prefixed("PK\3\4" + std::string(60, 'x')); }},
      edit("z05_trailing_garbage", "ZipStructure", [](Editable& a) { a.bytes.resize(a.bytes.size() + 100); }),
      edit("z05_trailing_70k", "ZipStructure", [](Editable& a) { a.bytes.resize(a.bytes.size() + 70000); }),
      {"z06_plain_zip_strict", "ZipStructure", plain_zip},
      {"z06_plain_zip_lenient", "accepted", plain_zip, true},
      put_field<uint64_t>("z19_directory_offset", "ZipStructure", &Editable::end64, 48, 0x7fffffff),
      put_field<uint64_t>("z19_directory_offset_2_40", "ZipStructure", &Editable::end64, 48,
                          uint64_t{1} << 40),
      put_field<uint64_t>("z19_directory_size", "ZipStructure", &Editable::end64, 40, 100),
      edit("z19_count", "ZipStructure",
           [](Editable& a) {
             a.put<uint64_t>(a.end64() + 24, 0xffffffff);
             a.put<uint64_t>(a.end64() + 32, 0xffffffff);
             a.put<uint32_t>(a.end() + 8, 0xffffffff);
           }),
      put_field<uint64_t>("z19_pointer", "ZipStructure", &Editable::locator, 8, uint64_t{1} << 62),
      put_field<uint32_t>("z19_disks", "ZipStructure", &Editable::locator, 16, 2),
      edit("z20_directory_wraps", "Overflow",
           [](Editable& a) {
             a.put<uint64_t>(a.end64() + 48, ~uint64_t{99});
             a.put<uint32_t>(a.end() + 16, 0xffffffff);
           }),
      edit("z22_counts_differ", "ZipStructure",
           [](Editable& a) {
             a.put<uint64_t>(a.end64() + 24, 3);
             a.put<uint64_t>(a.end64() + 32, 3);
           }),
      edit("z38_end_record_in_comment", "ZipStructure",
           [](Editable& a) {
             const Bytes end(a.bytes.end() - 22, a.bytes.end());
             a.put<uint16_t>(a.end() + 20, 22);
             append(a.bytes, end);
           }),
  };
}

std::vector<ZipCase> damaged_entries() {
  return {
      edit("z09_two_entries_one_record", "ZipOverlap",
           [](Editable& a) {
             a.put<uint32_t>(a.central("data/1") + 42, static_cast<uint32_t>(a.local("data/0")));
           }),
      edit("z10_names_differ", "EntryName", [](Editable& a) { a.rename("data/1", "data/7", false); }),
      edit("z11_local_signature", "ZipStructure",
           [](Editable& a) { a.put<uint32_t>(a.local("data/1"), 0x12345678); }),
      edit("z12_crc_in_directory", "ZipStructure",  // the descriptor still has the correct one
           [](Editable& a) { a.put<uint32_t>(a.central("data/0") + 16, 0x1234); }),
      edit("z12_crc_in_both", "CrcMismatch",
           [](Editable& a) {
             a.put<uint32_t>(a.central("data/0") + 16, 0x1234);
             a.put<uint32_t>(a.data("data/0") + a.size("data/0") + 4, 0x1234);
           }),
      edit("z12_flipped_bit", "CrcMismatch", [](Editable& a) { a.bytes[a.data("data/1")] ^= std::byte{1}; }),
      edit("z12_flipped_bit_in_pickle", "CrcMismatch",
           [](Editable& a) { a.bytes[a.data("data.pkl") + 9] ^= std::byte{1}; }),
      edit("z12_one_crc_zeroed", "CrcMismatch",
           [](Editable& a) {
             a.put<uint32_t>(a.central("data/0") + 16, 0);
             a.put<uint32_t>(a.data("data/0") + a.size("data/0") + 4, 0);
           }),
      put_field<uint16_t>("z13_deflated", "ZipUnsupported", &Editable::central, 10, 8),
      put_field<uint16_t>("z17_method_12", "ZipUnsupported", &Editable::central, 10, 12),
      put_field<uint16_t>("z17_flag_0x1", "ZipUnsupported", &Editable::central, 8, 0x0809),
      put_field<uint16_t>("z17_flag_0x20", "ZipUnsupported", &Editable::central, 8, 0x0828),
      put_field<uint16_t>("z17_flag_0x40", "ZipUnsupported", &Editable::central, 8, 0x0848),
      put_field<uint16_t>("z17_flag_0x2000", "ZipUnsupported", &Editable::central, 8, 0x2808),
      put_field<uint32_t>("z18_sizes_differ", "ZipStructure", &Editable::central, 24, 4096),
      edit("z21_size_beyond_file", "ZipStructure",
           [](Editable& a) {
             a.put<uint32_t>(a.central("data/0") + 20, 0x40000000);
             a.put<uint32_t>(a.central("data/0") + 24, 0x40000000);
           }),
      edit("z21_size_over_next_record", "ZipOverlap",
           [](Editable& a) {
             a.put<uint32_t>(a.central("data/0") + 20, 400);
             a.put<uint32_t>(a.central("data/0") + 24, 400);
           }),
      put_field<uint32_t>("z21_zip64_without_field", "ZipStructure", &Editable::central, 24, 0xffffffff),
      put_field<uint32_t>("z25_folder_attribute", "ZipStructure", &Editable::central, 38, 0x10),
      put_field<uint16_t>("z37_local_method", "ZipStructure", &Editable::local, 8, 8),
      put_field<uint16_t>("z37_local_encrypted", "ZipStructure", &Editable::local, 6, 0x0809),
      edit("z37_local_sizes", "ZipStructure",
           [](Editable& a) {
             a.put<uint32_t>(a.local("data/0") + 18, 1);
             a.put<uint32_t>(a.local("data/0") + 22, 999);
           }),
      edit("z37_descriptor", "ZipStructure",
           [](Editable& a) { a.put<uint64_t>(a.data("data/0") + a.size("data/0") + 8, ~uint64_t{0}); }),
  };
}

std::vector<ZipCase> damaged_records() {
  const std::string pickle(as_text(read_torch_zip(MappedFile::from_bytes(small_archive())).records[0].bytes));
  return {
      {"z07_duplicate_entry", "DuplicateEntry",
       [=] {
         return archive_of({{"data.pkl", to_bytes(pickle)}, {"data.pkl", to_bytes(pickle)}});
       }},
      edit("z08_upper_case_only", "EntryName", [](Editable& a) { a.rename("data.pkl", "DATA.PKL"); }),
      record("z08_both_cases", "DuplicateEntry", "DATA.PKL", "x"),
      edit("z23_other_folder", "EntryName", [](Editable& a) { a.put_in_name("data/1", 0, 'b'); }),
      edit("z23_no_folder", "EntryName", [](Editable& a) { a.put_in_name("version", 7, '_'); }),
      record("z24_parent_folder", "EntryName", "../../etc/passwd", "x"),
      record("z24_zero_in_name", "EntryName", std::string("da\0ta", 5), "x"),
      record("z24_long_name", "EntryName", std::string(60000, 'n'), "x"),
      record("z24_backslash", "EntryName", "data\\9", "x"),
      record("z26_version_missing", "Version", "version", std::nullopt),
      record("z26_version_0", "Version", "version", "0\n"),
      record("z26_version_11", "Version", "version", "11\n"),
      record("z26_version_abc", "Version", "version", "abc"),
      record("z26_version_empty", "Version", "version", ""),
      record("z26_version_negative", "Version", "version", "-1"),
      record("z26_version_long", "Version", "version", "12345678901234567890123"),
      record("z27_version_1", "accepted", "version", "1\n"),
      record("z27_version_10", "accepted", "version", "10\n"),
      record("z27_version_bare", "accepted", "version", "3"),
      record("z28_byte_order_pdp", "ByteOrder", "byteorder", "pdp"),
      record("z28_byte_order_big", "accepted", "byteorder", "big"),
      record("z28_byte_order_absent", "accepted", "byteorder", std::nullopt),
      record("z29_alignment_abc", "ZipStructure", ".storage_alignment", "abc"),
      record("z29_alignment_0", "ZipStructure", ".storage_alignment", "0"),
      record("z29_alignment_negative", "ZipStructure", ".storage_alignment", "-1"),
      record("z29_alignment_contradicted", "ZipStructure", ".storage_alignment", "1"),
      record("z30_unrelated_record", "accepted", "data/notes", "between storages"),
      record("z33_storage_missing", "StorageRef", "data/0", std::nullopt),
      record("z33_pickle_missing", "ZipStructure", "data.pkl", std::nullopt),
      record("z34_record_short", "StorageRef", "data/0", "1234"),
      record("z34_record_long", "StorageRef", "data/0", "123456789012"),
      record("z34_record_empty", "StorageRef", "data/0", ""),
      record("z36_torchscript", "NotArchive", "constants.pkl", "x"),
  };
}

class Archive : public ::testing::TestWithParam<ZipCase> {};

TEST_P(Archive, HasTheRequiredOutcome) {
  const Bytes bytes = GetParam().make();
  TorchZipOptions options;
  options.lenient = GetParam().lenient;
  EXPECT_EQ(outcome([&] { read_torch_zip(MappedFile::from_bytes(bytes), options); }), GetParam().required);
}

// An accepted archive is written back unchanged, whoever wrote it.
TEST_P(Archive, IsResavedByteForByteWhenAccepted) {
  if (GetParam().required != "accepted") return;
  const Bytes bytes = GetParam().make();
  TorchZipOptions options;
  options.lenient = GetParam().lenient;
  EXPECT_EQ(rebuild_torch_zip(read_torch_zip(MappedFile::from_bytes(bytes), options)), bytes);
}

const auto kZipCaseName = [](const ::testing::TestParamInfo<ZipCase>& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Ends, Archive, ::testing::ValuesIn(damaged_ends()), kZipCaseName);
INSTANTIATE_TEST_SUITE_P(Entries, Archive, ::testing::ValuesIn(damaged_entries()), kZipCaseName);
INSTANTIATE_TEST_SUITE_P(Records, Archive, ::testing::ValuesIn(damaged_records()), kZipCaseName);

TEST(ZipDirectory, RefusesMoreEntriesThanTheLimit) {
  Limits limits;
  limits.zip_entries = 3;
  EXPECT_EQ(outcome([&] { read_zip_directory(small_archive(), limits, false); }), "LimitExceeded");
}

TEST(ZipDirectory, NamesRecordAndTensorOfAFlippedBit) {
  Editable archive{small_archive()};
  archive.bytes[archive.data("data/1") + 2] ^= std::byte{4};
  try {
    read_torch_zip(MappedFile::from_bytes(archive.bytes));
    FAIL() << "a flipped bit was accepted";
  } catch (const Refused& refused) {
    EXPECT_NE(refused.refusal().detail.find("record data/1 (tensor y)"), std::string::npos) << refused.what();
    EXPECT_EQ(refused.refusal().offset, archive.data("data/1"));
  }
  TorchZipOptions unchecked;
  unchecked.crc = CrcPolicy::skip;
  const TorchZip zip = read_torch_zip(MappedFile::from_bytes(archive.bytes), unchecked);
  EXPECT_EQ(rebuild_torch_zip(zip), archive.bytes)
      << "a wrong CRC that was not checked is kept, not repaired";
}

TEST(ZipDirectory, SwapsBigEndianStorages) {
  const Bytes bytes = with_record("byteorder", to_bytes("big"));
  const TorchZip zip = read_torch_zip(MappedFile::from_bytes(bytes));
  const Bytes swapped = row_major_bytes(*tensor_of(zip, pickle::find(zip.root, "x")));
  const Bytes one = testing::raw<float>({1, 1});
  EXPECT_EQ(swapped[0], one[3]);
  EXPECT_EQ(swapped[3], one[0]);
}

// Accepts records without the alignment field.
TEST(ZipDirectory, AcceptsUnalignedRecords) {
  const TorchZip zip = read_torch_zip(MappedFile::from_bytes(small_archive()));
  std::vector<ZipRecord> records;
  for (const auto& record : zip.records) {
    if (record.name != ".storage_alignment")
      records.push_back({record.name, {record.bytes.begin(), record.bytes.end()}});
  }
  const Bytes bytes = archive_of(records, 1);
  const TorchZip unaligned = read_torch_zip(MappedFile::from_bytes(bytes));
  EXPECT_EQ(row_major_bytes(*tensor_of(unaligned, pickle::find(unaligned.root, "y"))),
            testing::raw<float>({2, 2, 2}));
  EXPECT_EQ(rebuild_torch_zip(unaligned), bytes);
}

}  // namespace
}  // namespace qcts
