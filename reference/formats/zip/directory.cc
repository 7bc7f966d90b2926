// SPDX-License-Identifier: BSD-3-Clause
// Record layouts: PKWARE APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.9 (descriptor), 4.3.12 (central),
// 4.3.14 to 4.3.16 (end). torch always writes all three end records (caffe2/serialize/inline_container.cc
// with MZ_ZIP_FLAG_WRITE_ZIP64).
#include "reference/formats/zip/directory.h"

#include <algorithm>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/zip/names.h"

namespace qcts {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kCentralMagic = 0x02014b50, kDescriptorMagic = 0x08074b50;
constexpr uint32_t kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocatorMagic = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint64_t kSmallestBytes = kEndBytes + kEnd64Bytes + kLocatorBytes;
constexpr uint16_t kDescriptorFlag = 0x0008;
// Flag bits that change how the data is read: encrypted, patched, strongly encrypted, masked headers (APPNOTE
// 4.4.4).
constexpr uint16_t kUnreadableFlags = 0x0001 | 0x0020 | 0x0040 | 0x2000;

[[noreturn]] void bad_structure(const std::string& what, uint64_t offset) {
  refuse(RefusalClass::ZipStructure, what, offset);
}

uint64_t add(uint64_t a, uint64_t b, const char* what, uint64_t offset) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    refuse(RefusalClass::Overflow, std::string(what) + " wraps", offset);
  return sum;
}

std::string named(const ZipEntry& entry) { return "entry " + std::string(entry.name); }

struct End {
  uint64_t count = 0, directory_bytes = 0, directory_offset = 0;
};

// Refuses a misplaced end record: either the file is truncated, or bytes follow the record.
[[noreturn]] void refuse_end(std::span<const std::byte> file) {
  const std::string_view text = as_text(file);
  constexpr std::string_view kMagic("PK\5\6", 4);
  for (size_t at = text.rfind(kMagic); at != std::string_view::npos;
       at = at == 0 ? text.npos : text.rfind(kMagic, at - 1)) {
    if (at + kEndBytes > file.size()) break;
    const uint64_t directory = uint64_t{load_le<uint32_t>(file, at + 12)} + load_le<uint32_t>(file, at + 16);
    const bool located = at >= kLocatorBytes && load_le<uint32_t>(file, at - kLocatorBytes) == kLocatorMagic;
    if (located || directory == at)
      bad_structure("bytes follow the end record of the archive", at + kEndBytes);
  }
  refuse(RefusalClass::Truncated,
         "the end record of the archive is missing: was the copy or download complete?", file.size());
}

End read_end(std::span<const std::byte> file, bool lenient) {
  const uint64_t at = file.size() - kEndBytes;
  if (load_le<uint32_t>(file, at) != kEndMagic) refuse_end(file);
  const uint16_t small_count = load_le<uint16_t>(file, at + 10);
  const uint32_t small_bytes = load_le<uint32_t>(file, at + 12),
                 small_offset = load_le<uint32_t>(file, at + 16);
  if (load_le<uint16_t>(file, at + 4) != 0 || load_le<uint16_t>(file, at + 6) != 0) {
    bad_structure("the archive spans several disks", at);
  }
  if (load_le<uint16_t>(file, at + 8) != small_count)
    bad_structure("the end record has two different entry counts", at);
  if (load_le<uint16_t>(file, at + 20) != 0) bad_structure("the archive has a comment", at);
  const uint64_t locator = at - kLocatorBytes;
  if (load_le<uint32_t>(file, locator) != kLocatorMagic) {
    if (!lenient) bad_structure("no ZIP64 end records, which torch.save always writes", at);
    if (uint64_t{small_offset} + small_bytes != at)
      bad_structure("the directory does not end at the end record", at);
    return {small_count, small_bytes, small_offset};
  }
  const uint64_t at64 = locator - kEnd64Bytes;
  if (load_le<uint32_t>(file, locator + 4) != 0 || load_le<uint32_t>(file, locator + 16) != 1) {
    bad_structure("the archive spans several disks", locator);
  }
  if (load_le<uint64_t>(file, locator + 8) != at64 || load_le<uint32_t>(file, at64) != kEnd64Magic ||
      load_le<uint64_t>(file, at64 + 4) != kEnd64Bytes - 12) {
    bad_structure("the ZIP64 end record is not before its locator", locator);
  }
  if (load_le<uint32_t>(file, at64 + 16) != 0 || load_le<uint32_t>(file, at64 + 20) != 0) {
    bad_structure("the archive spans several disks", at64);
  }
  const End end{load_le<uint64_t>(file, at64 + 32), load_le<uint64_t>(file, at64 + 40),
                load_le<uint64_t>(file, at64 + 48)};
  if (load_le<uint64_t>(file, at64 + 24) != end.count)
    bad_structure("the ZIP64 end record has two different entry counts", at64);
  if (small_count != std::min<uint64_t>(end.count, 0xffff) ||
      small_bytes != std::min<uint64_t>(end.directory_bytes, 0xffffffff) ||
      small_offset != std::min<uint64_t>(end.directory_offset, 0xffffffff)) {
    bad_structure("the two end records contradict each other", at64);
  }
  if (add(end.directory_offset, end.directory_bytes, "end of the directory", at64) != at64) {
    bad_structure("the directory does not end at the end record", at64);
  }
  return end;
}

// Calls visit(id, field) for each extra field; false when the lengths do not add up.
template <typename Visit>
bool for_each_extra(std::span<const std::byte> extra, Visit&& visit) {
  while (!extra.empty()) {
    if (extra.size() < 4) return false;
    const uint16_t id = load_le<uint16_t>(extra, 0), count = load_le<uint16_t>(extra, 2);
    if (extra.size() - 4 < count) return false;
    visit(id, extra.subspan(4, count));
    extra = extra.subspan(4 + size_t{count});
  }
  return true;
}

// Replaces fields that are all ones by those of the zip64 extra field.
void read_zip64(ZipEntry& entry, std::span<const std::byte> extra, uint64_t at) {
  std::vector<uint64_t*> wide;
  for (uint64_t* field : {&entry.size, &entry.stored_size, &entry.header_offset}) {
    if (*field == 0xffffffff) wide.push_back(field);
  }
  int seen = 0;
  bool fits = true;
  const bool whole = for_each_extra(extra, [&](uint16_t id, std::span<const std::byte> field) {
    if (id != 1) return;
    ++seen;
    entry.zip64 = true;
    fits = field.size() == 8 * wide.size();
    for (size_t i = 0; fits && i < wide.size(); ++i) *wide[i] = load_le<uint64_t>(field, 8 * i);
  });
  if (!whole || !fits || seen > 1 || (seen == 0 && !wide.empty())) {
    bad_structure("the extra field of a directory entry does not fit the entry", at);
  }
}

std::vector<ZipEntry> read_central(std::span<const std::byte> file, const End& end) {
  std::vector<ZipEntry> entries;
  entries.reserve(end.count);
  uint64_t at = end.directory_offset;
  uint64_t left = end.directory_bytes;
  for (uint64_t i = 0; i < end.count; ++i) {
    if (left < kZipCentralBytes || load_le<uint32_t>(file, at) != kCentralMagic) {
      bad_structure("the directory holds fewer entries than the end record counts", at);
    }
    const uint64_t name = load_le<uint16_t>(file, at + 28), extra = load_le<uint16_t>(file, at + 30);
    if (left - kZipCentralBytes < name + extra || load_le<uint16_t>(file, at + 32) != 0) {
      bad_structure("a directory entry is longer than the directory, or has a comment", at);
    }
    ZipEntry entry;
    entry.flags = load_le<uint16_t>(file, at + 8);
    entry.method = load_le<uint16_t>(file, at + 10);
    entry.crc = load_le<uint32_t>(file, at + 16);
    entry.stored_size = load_le<uint32_t>(file, at + 20);
    entry.size = load_le<uint32_t>(file, at + 24);
    entry.header_offset = load_le<uint32_t>(file, at + 42);
    entry.name = as_text(file.subspan(at + kZipCentralBytes, name));
    read_zip64(entry, file.subspan(at + kZipCentralBytes + name, extra), at);
    add(add(entry.header_offset, kLocalBytes, "a header's offset", at), entry.size, "the end of a record",
        at);
    if (load_le<uint16_t>(file, at + 34) != 0) bad_structure("an entry is on another disk", at);
    if ((load_le<uint32_t>(file, at + 38) & 0x10) != 0) bad_structure(named(entry) + " is a folder", at);
    at += kZipCentralBytes + name + extra;
    left -= kZipCentralBytes + name + extra;
    entries.push_back(std::move(entry));
  }
  if (left != 0) bad_structure("the directory holds more than the end record counts", at);
  return entries;
}

// TorchScript archives deflate their sources (torch/csrc/jit/serialization/export_module.cpp, 2.13).
bool may_be_deflated(const ZipEntry& entry, const std::string& prefix, ZipKind kind) {
  constexpr uint16_t kDeflated = 8;
  return kind == ZipKind::torchscript && entry.method == kDeflated &&
         entry.name.substr(prefix.size()).starts_with("/code/");
}

void check_readable(const std::vector<ZipEntry>& entries, const std::string& prefix, ZipKind kind) {
  for (const ZipEntry& entry : entries) {
    const bool deflated = may_be_deflated(entry, prefix, kind);
    if (entry.method != 0 && !deflated) {
      refuse(RefusalClass::ZipUnsupported,
             named(entry) + ": compression method " + std::to_string(entry.method), entry.header_offset);
    }
    if ((entry.flags & kUnreadableFlags) != 0) {
      refuse(RefusalClass::ZipUnsupported, named(entry) + ": encrypted or patched", entry.header_offset);
    }
    if (entry.size != entry.stored_size && !deflated) {
      bad_structure(named(entry) + ": stored, but its two sizes differ", entry.header_offset);
    }
  }
}

void read_local(PreadWindow& file, ZipEntry& entry, uint64_t limit) {
  const uint64_t at = entry.header_offset;
  const auto wrong = [&](const char* why) { bad_structure(named(entry) + ": " + why, at); };
  if (add(at, kLocalBytes, "a header's offset", at) > limit) wrong("its header is outside the records");
  const std::span<const std::byte> header = file(at, kLocalBytes);
  if (load_le<uint32_t>(header, 0) != kLocalMagic) wrong("its offset does not lead to a local header");
  if (load_le<uint16_t>(header, 6) != entry.flags || load_le<uint16_t>(header, 8) != entry.method) {
    wrong("local header and directory differ in flags or method");
  }
  const uint32_t crc = load_le<uint32_t>(header, 14), stored_size = load_le<uint32_t>(header, 18),
                 size = load_le<uint32_t>(header, 22);
  const uint64_t name = load_le<uint16_t>(header, 26), extra = load_le<uint16_t>(header, 28);
  entry.data_offset = at + kLocalBytes + name + extra;
  if (entry.data_offset > limit) wrong("its header reaches outside the records");
  const std::span<const std::byte> fields = file(at + kLocalBytes, name + extra);
  if (as_text(fields.first(name)) != entry.name) {
    refuse(RefusalClass::EntryName, named(entry) + ": the local header has another name", at);
  }
  const bool described = (entry.flags & kDescriptorFlag) != 0;
  const auto agrees = [&](uint32_t local, uint64_t central) {
    return local == std::min<uint64_t>(central, 0xffffffff) || (described && local == 0) ||
           (entry.zip64 && local == 0xffffffff);
  };
  if (!agrees(crc, entry.crc) || !agrees(stored_size, entry.stored_size) || !agrees(size, entry.size)) {
    wrong("local header and directory differ in size or CRC");
  }
  const bool whole = for_each_extra(fields.subspan(name), [&](uint16_t id, std::span<const std::byte> field) {
    constexpr uint16_t kPaddingId = 'F' | 'B' << 8;
    if (id == kPaddingId) entry.padding_bytes = static_cast<uint16_t>(field.size());
  });
  if (!whole) wrong("the extra field of its header is damaged");
}

// Reads data and descriptor; `next` is the start of the following record.
void read_extent(PreadWindow& file, ZipEntry& entry, uint64_t next, uint64_t limit) {
  const auto wrong = [&](const char* why) { bad_structure(named(entry) + ": " + why, entry.header_offset); };
  const uint64_t end = add(entry.data_offset, entry.stored_size, "the end of a record", entry.header_offset);
  if (end > limit) wrong("its data reaches outside the records");
  if (end > next)
    refuse(RefusalClass::ZipOverlap, named(entry) + " overlaps the next one", entry.header_offset);
  entry.record_end = end;
  if ((entry.flags & kDescriptorFlag) == 0) return;
  const uint64_t width = entry.zip64 ? 8 : 4;
  if (next - end < 8 + 2 * width) wrong("its data descriptor is missing");
  const std::span<const std::byte> descriptor = file(end, 8 + 2 * width);
  const auto size_at = [&](uint64_t at) {
    return entry.zip64 ? load_le<uint64_t>(descriptor, at) : uint64_t{load_le<uint32_t>(descriptor, at)};
  };
  if (load_le<uint32_t>(descriptor, 0) != kDescriptorMagic || load_le<uint32_t>(descriptor, 4) != entry.crc ||
      size_at(8) != entry.stored_size || size_at(8 + width) != entry.size) {
    wrong("its data descriptor contradicts the directory");
  }
  entry.record_end = end + 8 + 2 * width;
}

// Visits the names of the directory as far as it can be followed.
template <typename Visit>
void for_each_name(std::span<const std::byte> file, Visit&& visit) {
  if (file.size() < kEndBytes) return;
  const uint64_t end = file.size() - kEndBytes;
  if (load_le<uint32_t>(file, end) != kEndMagic) return;
  uint64_t at = load_le<uint32_t>(file, end + 16);
  if (at == 0xffffffff && end >= kLocatorBytes + kEnd64Bytes) {
    at = load_le<uint64_t>(file, end - kLocatorBytes - kEnd64Bytes + 48);
  }
  while (at < end && end - at >= kZipCentralBytes && load_le<uint32_t>(file, at) == kCentralMagic) {
    const uint64_t name = load_le<uint16_t>(file, at + 28), extra = load_le<uint16_t>(file, at + 30);
    if (end - at - kZipCentralBytes < name + extra) return;
    if (!visit(as_text(file.subspan(at + kZipCentralBytes, name)))) return;
    at += kZipCentralBytes + name + extra;
  }
}

// Reads the records and checks that every byte before the directory belongs to exactly one.
void read_records(PreadWindow& file, std::vector<ZipEntry>& entries, uint64_t limit, bool lenient) {
  std::ranges::sort(entries, {}, &ZipEntry::header_offset);
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].header_offset == entries[i - 1].header_offset) {
      refuse(RefusalClass::ZipOverlap,
             "entries " + std::string(entries[i - 1].name) + " and " + std::string(entries[i].name) +
                 " are one record",
             entries[i].header_offset);
    }
  }
  uint64_t expected = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    read_local(file, entries[i], limit);
    const uint64_t next = i + 1 < entries.size() ? std::min(entries[i + 1].header_offset, limit) : limit;
    read_extent(file, entries[i], next, limit);
    if (entries[i].header_offset != expected && (!lenient || i == 0)) {
      bad_structure("bytes before " + named(entries[i]) + " belong to nothing", expected);
    }
    expected = entries[i].record_end;
  }
  if (expected != limit && !lenient)
    bad_structure("bytes before the directory belong to no record", expected);
}

ZipDirectory read_directory(std::span<const std::byte> file, PreadWindow records, const Limits& limits,
                            bool lenient, ZipKind kind) {
  const bool begins = file.size() >= 4 && load_le<uint32_t>(file, 0) == kLocalMagic;
  if (!begins) refuse(RefusalClass::NotArchive, "the file does not begin with a zip record", 0);
  if (file.size() < kSmallestBytes)
    refuse(RefusalClass::NotArchive,
           "the file ends in its first zip record: was the copy or download complete?", file.size());
  const End end = read_end(file, lenient);
  if (end.count > end.directory_bytes / kZipCentralBytes) {
    bad_structure("the directory is too short for its entries", end.directory_offset);
  }
  if (end.count > limits.zip_entries || end.directory_bytes > limits.zip_directory_bytes) {
    refuse(RefusalClass::LimitExceeded, "the archive has " + std::to_string(end.count) + " entries",
           end.directory_offset);
  }
  ZipDirectory directory;
  directory.entries = read_central(file, end);
  if (directory.entries.empty()) bad_structure("the archive has no entries", end.directory_offset);
  directory.prefix = check_zip_names(directory.entries, limits);
  for (const ZipEntry& entry : directory.entries) {
    if (kind == ZipKind::torch_save && entry.name.substr(directory.prefix.size()) == "/constants.pkl") {
      refuse(RefusalClass::NotArchive,
             "a TorchScript archive (constants.pkl), which is not a torch.save file", 0);
    }
  }
  check_readable(directory.entries, directory.prefix, kind);
  read_records(records, directory.entries, end.directory_offset, lenient);
  return directory;
}

}  // namespace

bool names_torchscript(std::span<const std::byte> file) {
  bool found = false;
  for_each_name(file, [&](std::string_view name) {
    const size_t slash = std::min(name.find('/'), name.size());
    const std::string_view record = name.substr(slash);
    found = record == "/constants.pkl" || record.starts_with("/code/");
    return !found;
  });
  return found;
}

ZipDirectory read_zip_directory(std::span<const std::byte> file, const Limits& limits, bool lenient,
                                ZipKind kind) {
  return read_directory(file, PreadWindow(file), limits, lenient, kind);
}

ZipDirectory read_zip_directory(const MappedFile& file, const Limits& limits, bool lenient, ZipKind kind) {
  return read_directory(file.bytes(), PreadWindow(file), limits, lenient, kind);
}

}  // namespace qcts
