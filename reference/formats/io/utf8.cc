// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace qcts {
namespace {

bool continues(std::string_view text, size_t at, size_t count) {
  if (text.size() - at < count) return false;
  for (size_t i = 0; i < count; ++i) {
    if ((static_cast<uint8_t>(text[at + i]) & 0xc0) != 0x80) return false;
  }
  return true;
}

// Returns the position, from `at` on, of the first eight bytes that are not all ASCII.
size_t skip_ascii(std::string_view text, size_t at) {
  for (uint64_t eight = 0; text.size() - at >= sizeof eight; at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if ((eight & 0x8080808080808080) != 0) break;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view text, bool surrogates) {
  for (size_t at = skip_ascii(text, 0); at < text.size();) {
    const uint8_t lead = static_cast<uint8_t>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || !continues(text, at + 1, more)) return false;
    const uint8_t second = static_cast<uint8_t>(text[at + 1]);
    if (lead == 0xe0 && second < 0xa0) return false;                 // overlong
    if (lead == 0xf0 && second < 0x90) return false;                 // overlong
    if (lead == 0xf4 && second > 0x8f) return false;                 // above U+10FFFF
    if (lead == 0xed && second > 0x9f && !surrogates) return false;  // U+D800..U+DFFF
    at += 1 + more;
  }
  return true;
}

bool is_latin1(std::string_view text) {
  for (char c : text) {
    if (static_cast<uint8_t>(c) > 0xc3 || static_cast<uint8_t>(c) == 0xc0 || static_cast<uint8_t>(c) == 0xc1)
      return false;
  }
  return is_utf8(text);
}

}  // namespace qcts
