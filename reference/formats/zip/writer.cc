// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/zip/writer.h"

#include <algorithm>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

constexpr uint32_t kFull = 0xffffffff;
constexpr uint16_t kWriteUtf8 = 0x0800, kWriteDescriptor = 0x0008;

uint32_t narrow(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, kFull)); }

uint16_t flags_of(uint64_t size) { return size == 0 ? kWriteUtf8 : kWriteUtf8 | kWriteDescriptor; }

}  // namespace

ZipWriter::ZipWriter(ByteSink& out, std::string prefix, uint32_t alignment_bytes)
    : out_(out), prefix_(std::move(prefix)), alignment_(alignment_bytes) {}

uint32_t ZipWriter::add(const std::string& name, std::span<const std::byte> data,
                        const std::function<uint32_t()>& crc_of_data) {
  const uint64_t size = data.size(), offset = out_.written();
  const bool big_size = size >= kFull, big_offset = offset >= kFull;
  const std::string full = prefix_ + "/" + name;
  if (full.size() > 0xffff)
    refuse(RefusalClass::EntryName, "zip: an entry's name is longer than 65535 bytes");
  const uint64_t zip64 = big_size || big_offset ? 4 + (big_size ? 16 : 0) + (big_offset ? 8 : 0) : 0;
  const uint64_t start = offset + 30 + full.size() + zip64 + 4;
  const uint16_t padding = static_cast<uint16_t>((alignment_ - start % alignment_) % alignment_);

  std::vector<std::byte> header;
  append_le<uint32_t>(header, 0x04034b50);
  append_le<uint16_t>(header, 0);
  append_le<uint16_t>(header, flags_of(size));
  header.insert(header.end(), 18, std::byte{0});  // method, time, date, CRC, sizes
  append_le<uint16_t>(header, static_cast<uint16_t>(full.size()));
  append_le<uint16_t>(header, static_cast<uint16_t>(zip64 + 4 + padding));
  append(header, full);
  if (zip64 != 0) {
    append_le<uint16_t>(header, 1);
    append_le<uint16_t>(header, static_cast<uint16_t>(zip64 - 4));
    if (big_size) {
      append_le<uint64_t>(header, size);
      append_le<uint64_t>(header, 0);  // the writer does not know the stored size yet
    }
    if (big_offset) append_le<uint64_t>(header, offset);
  }
  append(header, "FB");
  append_le<uint16_t>(header, padding);
  header.insert(header.end(), padding, std::byte{'Z'});
  out_.write(header);
  out_.write(data);
  const uint32_t crc = crc_of_data();
  std::vector<std::byte> descriptor;
  if (size != 0) {
    append_le<uint32_t>(descriptor, 0x08074b50);
    append_le<uint32_t>(descriptor, crc);
    for (int i = 0; i < 2; ++i) {
      if (zip64 != 0)
        append_le<uint64_t>(descriptor, size);
      else
        append_le<uint32_t>(descriptor, static_cast<uint32_t>(size));
    }
  }
  out_.write(descriptor);
  entries_.push_back({full, size, offset, crc});
  return crc;
}

void ZipWriter::finish() {
  const uint64_t directory = out_.written();
  std::vector<std::byte> tail;
  for (const Entry& entry : entries_) {
    const bool big_size = entry.size >= kFull, big_offset = entry.offset >= kFull;
    const uint16_t zip64 =
        static_cast<uint16_t>(big_size || big_offset ? 4 + (big_size ? 16 : 0) + (big_offset ? 8 : 0) : 0);
    append_le<uint32_t>(tail, 0x02014b50);
    append_le<uint32_t>(tail, 0);  // versions made by and needed
    append_le<uint16_t>(tail, flags_of(entry.size));
    tail.insert(tail.end(), 6, std::byte{0});  // method, time, date
    append_le<uint32_t>(tail, entry.crc);
    append_le<uint32_t>(tail, narrow(entry.size));
    append_le<uint32_t>(tail, narrow(entry.size));
    append_le<uint16_t>(tail, static_cast<uint16_t>(entry.name.size()));
    append_le<uint16_t>(tail, zip64);
    tail.insert(tail.end(), 10, std::byte{0});  // comment, disk, attributes
    append_le<uint32_t>(tail, narrow(entry.offset));
    append(tail, entry.name);
    if (zip64 == 0) continue;
    append_le<uint16_t>(tail, 1);
    append_le<uint16_t>(tail, static_cast<uint16_t>(zip64 - 4));
    if (big_size) {
      append_le<uint64_t>(tail, entry.size);
      append_le<uint64_t>(tail, entry.size);
    }
    if (big_offset) append_le<uint64_t>(tail, entry.offset);
  }
  const uint64_t end64 = directory + tail.size(), count = entries_.size(), bytes = end64 - directory;
  append_le<uint32_t>(tail, 0x06064b50);
  append_le<uint64_t>(tail, 44);
  append_le<uint16_t>(tail, 0x031e);
  append_le<uint16_t>(tail, 0x002d);
  append_le<uint64_t>(tail, 0);  // disks
  append_le<uint64_t>(tail, count);
  append_le<uint64_t>(tail, count);
  append_le<uint64_t>(tail, bytes);
  append_le<uint64_t>(tail, directory);
  append_le<uint32_t>(tail, 0x07064b50);
  append_le<uint32_t>(tail, 0);
  append_le<uint64_t>(tail, end64);
  append_le<uint32_t>(tail, 1);
  append_le<uint32_t>(tail, 0x06054b50);
  append_le<uint32_t>(tail, 0);
  const uint16_t small_count = static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff));
  append_le<uint16_t>(tail, small_count);
  append_le<uint16_t>(tail, small_count);
  append_le<uint32_t>(tail, narrow(bytes));
  append_le<uint32_t>(tail, narrow(directory));
  append_le<uint16_t>(tail, 0);
  out_.write(tail);
}

}  // namespace qcts
