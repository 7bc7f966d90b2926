// SPDX-License-Identifier: BSD-3-Clause
// Reads one pickle from front to back.
// If the data ends early or is too long, the refusal has the offset of the current opcode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/refusal.h"

namespace qcts::pickle {

class Source {
 public:
  // Reads at most limits.pickle_bytes of `data`.
  // Offsets count from `base_offset`, the pickle's position in its file.
  Source(std::span<const std::byte> data, const Limits& limits, uint64_t base_offset);

  uint8_t begin_opcode() {
    opcode_at_ = base_offset_ + at_;
    return take_le<uint8_t>("the opcodes: STOP is missing");
  }
  // Throws Refused (Truncated), or LimitExceeded if limits.pickle_bytes has truncated the pickle.
  std::span<const std::byte> take(uint64_t count_bytes, const char* what) {
    if (count_bytes > data_.size() - at_) fail_short(what);
    at_ += count_bytes;
    return data_.subspan(at_ - count_bytes, count_bytes);
  }
  template <typename T>
  T take_le(const char* what) {
    return load_le<T>(take(sizeof(T), what), 0);
  }
  std::string take_line();                           // up to and including '\n'
  std::string_view take_text(uint64_t count_bytes);  // at most limits.pickle_string_bytes

  uint64_t at() const { return at_; }                // number of bytes read
  uint64_t opcode_at() const { return opcode_at_; }  // offset of the current opcode in the file

  [[noreturn]] void fail(RefusalClass cls, std::string_view what) const;
  // Throws Refused (PickleGlobal) for `module.name` and for all later globals that `is_known` rejects.
  // Finds the later globals as far as the rest of the pickle can be parsed.
  using IsKnown = std::function<bool(const std::string& module, const std::string& name)>;
  [[noreturn]] void fail_globals(const std::string& module, const std::string& name,
                                 const IsKnown& is_known) const;

 private:
  [[noreturn]] void fail_short(const char* what) const;

  std::span<const std::byte> data_;
  bool cut_;  // true if `data` was longer than a pickle is allowed to be
  const Limits& limits_;
  uint64_t base_offset_;
  uint64_t at_ = 0;
  uint64_t opcode_at_ = 0;
};

}  // namespace qcts::pickle
