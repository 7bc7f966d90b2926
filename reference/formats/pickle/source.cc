// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/source.h"

#include <algorithm>
#include <vector>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/opcodes.h"

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

void Source::fail_globals(const std::string& module, const std::string& name, const IsKnown& is_known) const {
  constexpr size_t kMaxNames = 64, kMaxGlobals = 1 << 16;  // picklers write each global once
  std::vector<std::string> names{module + "." + name};
  std::string_view note = global_note(module, name);
  const std::string_view rest = as_text(data_);
  size_t globals = 0;
  for (size_t at = at_; at < rest.size() && names.size() < kMaxNames && globals < kMaxGlobals;) {
    if (rest[at] != 'c') {
      const auto bytes = opcode_bytes(data_.subspan(at));
      if (!bytes) break;
      at += *bytes;
      continue;
    }
    const size_t middle = rest.find('\n', at),
                 end = middle == rest.npos ? middle : rest.find('\n', middle + 1);
    if (end == rest.npos || end - at > limits_.pickle_string_bytes) break;
    const std::string other_module(rest.substr(at + 1, middle - at - 1)),
        other(rest.substr(middle + 1, end - middle - 1));
    at = end + 1;
    ++globals;
    if (is_known(other_module, other)) continue;
    std::string full = other_module + "." + other;
    if (std::ranges::find(names, full) == names.end()) names.push_back(std::move(full));
    if (note.empty()) note = global_note(other_module, other);
  }
  refuse_globals(names, note, opcode_at_);
}

std::string_view Source::take_text(uint64_t count_bytes) {
  if (count_bytes <= data_.size() - at_ && count_bytes > limits_.pickle_string_bytes) {
    fail(RefusalClass::LimitExceeded, "a string of " + std::to_string(count_bytes) + " bytes");
  }
  return as_text(take(count_bytes, "a string"));
}

}  // namespace qcts::pickle
