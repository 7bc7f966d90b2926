// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/source.h"

#include <algorithm>

namespace qcts::pickle {

Source::Source(std::span<const std::byte> data, const Limits& limits, uint64_t base_offset)
    : data_(data.first(std::min<uint64_t>(data.size(), limits.pickle_bytes))),
      cut_(data_.size() < data.size()),
      limits_(limits),
      base_offset_(base_offset) {}

void Source::fail(RefusalClass cls, std::string_view what) const {
  refuse(cls, std::string("data.pkl: ").append(what), opcode_at_);
}

void Source::fail_short(const char* what) const {
  if (cut_)
    fail(RefusalClass::LimitExceeded, "the pickle has more than " + std::to_string(data_.size()) + " bytes");
  fail(RefusalClass::Truncated, std::string("the pickle ends inside ") + what);
}

std::string Source::take_line() {
  const uint64_t max_bytes = std::min<uint64_t>(data_.size() - at_, limits_.pickle_string_bytes);
  const std::string_view rest = as_text(data_.subspan(at_, max_bytes));
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    if (max_bytes == data_.size() - at_) fail(RefusalClass::Truncated, "a global's name has no end");
    fail(RefusalClass::LimitExceeded, "a global's name is too long");
  }
  at_ += end + 1;
  return std::string(rest.substr(0, end));
}

std::string_view Source::take_text(uint64_t count_bytes) {
  if (count_bytes <= data_.size() - at_ && count_bytes > limits_.pickle_string_bytes) {
    fail(RefusalClass::LimitExceeded, "a string of " + std::to_string(count_bytes) + " bytes");
  }
  return as_text(take(count_bytes, "a string"));
}

}  // namespace qcts::pickle
