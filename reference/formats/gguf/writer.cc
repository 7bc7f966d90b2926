// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "reference/formats/gguf/gguf.h"
#include "reference/formats/io/byte_io.h"

namespace qcts {
namespace {

class GgufWriter {
 public:
  GgufWriter(const Gguf& file, ByteSink& out) : file_(file), out_(out) {}

  void write() {
    append(header_, "GGUF");
    append_le<uint32_t>(header_, file_.version);
    append_le<uint64_t>(header_, file_.entries.size());
    append_le<uint64_t>(header_, file_.metadata.size());
    for (const GgufPair& pair : file_.metadata) {
      append_string(pair.key);
      append_le(header_, static_cast<uint32_t>(pair.value.type));
      append_value(pair.value);
    }
    append_descriptions();
    flush();
    write_data();
  }

 private:
  void append_string(std::string_view text) {
    append_le<uint64_t>(header_, text.size());
    append(header_, text);
  }

  void append_value(const GgufValue& value) {
    if (value.type == GgufValueType::string) return append_string(value.text);
    if (value.type != GgufValueType::array) {
      for (uint64_t i = 0; i < gguf_value_bytes(value.type); ++i)
        header_.push_back(static_cast<std::byte>(value.bits >> (8 * i) & 0xff));
      return;
    }
    append_le(header_, static_cast<uint32_t>(value.item_type));
    append_le<uint64_t>(header_, value.count);
    flush();  // the vocabulary of a model takes megabytes
    out_.write(value.items);
  }

  void append_descriptions() {
    uint64_t at = 0;
    for (const GgufEntry& entry : file_.entries) {
      append_string(entry.name);
      append_le(header_, static_cast<uint32_t>(entry.shape.size()));
      for (size_t d = entry.shape.size(); d-- > 0;) append_le(header_, static_cast<uint64_t>(entry.shape[d]));
      append_le(header_, entry.type->id);
      append_le(header_, at);
      at = padded(at + bytes_of(entry.tensor.dtype, entry.tensor.shape));
    }
  }

  void write_data() {
    if (file_.entries.empty()) return pad(file_.end_padding_bytes);
    pad(padded(out_.written()) - out_.written());
    std::vector<std::byte> scratch;
    for (size_t i = 0; i < file_.entries.size(); ++i) {
      const std::span<const std::byte> bytes = row_major_view(file_.entries[i].tensor, scratch);
      out_.write(bytes);
      const bool last = i + 1 == file_.entries.size();
      pad(last ? file_.end_padding_bytes : padded(bytes.size()) - bytes.size());
    }
  }

  uint64_t padded(uint64_t at) const {
    return (at + file_.alignment - 1) / file_.alignment * file_.alignment;
  }

  void flush() {
    out_.write(header_);
    header_.clear();
  }

  // Writes zeros, or the bytes that the file had in this place.
  void pad(uint64_t count) {
    while (stray_ < file_.stray.size() && file_.stray[stray_].offset < out_.written()) ++stray_;
    if (stray_ < file_.stray.size() && file_.stray[stray_].offset == out_.written() &&
        file_.stray[stray_].bytes.size() == count)
      return out_.write(file_.stray[stray_].bytes);
    static constexpr std::array<std::byte, 4096> kZeros = {};
    for (uint64_t left = count; left > 0;) {
      const uint64_t piece = std::min<uint64_t>(left, kZeros.size());
      out_.write(std::span(kZeros).first(piece));
      left -= piece;
    }
  }

  const Gguf& file_;
  ByteSink& out_;
  std::vector<std::byte> header_;
  size_t stray_ = 0;  // the next of file_.stray
};

}  // namespace

void rebuild_gguf(const Gguf& file, ByteSink& out) { GgufWriter(file, out).write(); }

std::vector<std::byte> rebuild_gguf(const Gguf& file) {
  VectorSink out(file.file ? file.file->bytes().size() : 0);
  rebuild_gguf(file, out);
  return std::move(out).take();
}

}  // namespace qcts
