// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/printable.h"

#include <cstdint>
#include <cstdio>
#include <optional>

#include "reference/formats/io/utf8.h"

namespace qcts {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
};

// nullopt: the byte at `at` begins no well-formed character.
std::optional<Character> character_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t bytes = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const std::string_view whole = text.substr(at, bytes);
  if (whole.size() < bytes || !is_utf8(whole)) return std::nullopt;
  uint32_t code = bytes == 1 ? lead : lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (static_cast<unsigned char>(whole[i]) & 0x3f);
  return Character{code, bytes};
}

// Controls, and what changes the direction of text, is invisible, or ends a line.
bool is_steering(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
         (code >= 0xe0000 && code <= 0xe007f);
}

// Bytes of printable ASCII at the start of the text.
size_t plain_bytes(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size() && text[bytes] >= 0x20 && text[bytes] < 0x7f) ++bytes;
  return bytes;
}

std::string numbered(const char* format, uint32_t code) {
  char digits[16];
  std::snprintf(digits, sizeof digits, format, code);
  return digits;
}

std::string escape(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return numbered(code < 0x80 ? "\\x%02x" : "\\u%04x", code);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t plain = plain_bytes(text.substr(at));
    out += text.substr(at, plain);
    if ((at += plain) == text.size()) break;
    const std::optional<Character> character = character_at(text, at);
    if (!character) {
      out += numbered("\\x%02x", static_cast<unsigned char>(text[at++]));
      continue;
    }
    if (is_steering(character->code))
      out += escape(character->code);
    else
      out += text.substr(at, character->bytes);
    at += character->bytes;
  }
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    const Character character = character_at(json, at).value_or(Character{0xfffd, 1});
    const uint32_t code = character.code;
    if (code == '\n' || !is_steering(code))
      out += json.substr(at, character.bytes);
    else if (code < 0x10000)
      out += numbered("\\u%04x", code);
    else
      out += numbered("\\ud%03x", 0x800 + ((code - 0x10000) >> 10)) +
             numbered("\\ud%03x", 0xc00 + (code & 0x3ff));
    at += character.bytes;
  }
  return out;
}

}  // namespace qcts
