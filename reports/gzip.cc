// SPDX-License-Identifier: BSD-3-Clause
#include "reports/gzip.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <zlib.h>

namespace qcts {
namespace {

constexpr int kGzip = 15 + 16;  // window bits; 16 asks zlib for gzip's header and check sum
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr uint64_t kMaxTextBytes = uint64_t{4} << 30;

// zlib counts in unsigned int, so input goes in parts.
void feed(z_stream& stream, std::string_view& rest) {
  const size_t part = std::min(rest.size(), kChunkBytes);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
  stream.avail_in = static_cast<uInt>(part);
  rest.remove_prefix(part);
}

// Appends what `step` (deflate or inflate) writes until it leaves room.
template <typename Step>
int drain(z_stream& stream, std::string& out, Step step) {
  int code = Z_OK;
  do {
    const size_t before = out.size();
    out.resize(before + kChunkBytes);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = kChunkBytes;
    code = step();
    out.resize(before + kChunkBytes - stream.avail_out);
  } while (code == Z_OK && stream.avail_out == 0);
  return code;
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gzipped(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string out;
  int code = Z_OK;
  do {
    feed(stream, text);
    code = drain(stream, out, [&] { return deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH); });
  } while (code != Z_STREAM_END);
  deflateEnd(&stream);
  return out;
}

std::string gunzipped(std::string_view bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) throw std::bad_alloc();
  std::string out;
  int code = Z_STREAM_END;
  while (!bytes.empty() || stream.avail_in != 0) {
    if (stream.avail_in == 0) feed(stream, bytes);
    if (code == Z_STREAM_END) inflateReset(&stream);  // the next member
    code = drain(stream, out, [&] { return inflate(&stream, Z_NO_FLUSH); });
    if (code == Z_BUF_ERROR) code = Z_OK;  // wants more input
    if ((code != Z_OK && code != Z_STREAM_END) || out.size() > kMaxTextBytes) break;
  }
  inflateEnd(&stream);
  if (out.size() > kMaxTextBytes) throw std::runtime_error("gzip: more than 4 GiB");
  if (code == Z_OK) throw std::runtime_error("gzip: truncated");
  if (code != Z_STREAM_END) throw std::runtime_error("gzip: damaged");
  return out;
}

}  // namespace qcts
