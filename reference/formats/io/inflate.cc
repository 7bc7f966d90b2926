// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/inflate.h"

#include <zlib.h>

#include <memory>

#include "reference/formats/refusal.h"

namespace qcts {

std::vector<std::byte> inflate(std::span<const std::byte> stored, uint64_t bytes, const std::string& what,
                               uint64_t offset) {
  const auto damaged = [&](const char* why) {
    refuse(RefusalClass::ZipStructure, what + ": " + why, offset);
  };
  // Deflate expands at most 1032-fold: a match of two bits yields up to 258 bytes (RFC 1951, section 3.2.5).
  constexpr uint64_t kMaxInflatedPerByte = 1032;
  if (bytes / kMaxInflatedPerByte > stored.size())
    damaged("its declared size is more than its data can inflate to");
  if (stored.size() > UINT32_MAX || bytes >= UINT32_MAX) {
    refuse(RefusalClass::LimitExceeded, what + ": compressed records of 4 GiB or more are not supported",
           offset);
  }
  std::vector<std::byte> out(bytes + 1);  // one more byte detects data that is too long
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::inflate(&stream, Z_FINISH);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (stream.total_out > bytes) damaged("it inflates to more than its declared size");
  if (result != Z_STREAM_END) damaged("its compressed data is corrupt or truncated");
  if (stream.total_out != bytes) damaged("it inflates to less than its declared size");
  if (stream.avail_in != 0) damaged("extra bytes follow its compressed data");
  out.resize(bytes);
  return out;
}

}  // namespace qcts
