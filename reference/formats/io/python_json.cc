// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/python_json.h"

namespace qcts {
namespace {

constexpr std::string_view kWords[] = {"NaN", "Infinity", "-Infinity"};

// A string that no file has: nlohmann::json escapes the control character when it writes it.
std::string mark_of(std::string_view word) { return "\"\\u0001" + std::string(word) + "\""; }

}  // namespace

std::optional<std::string> marked_python_numbers(std::string_view text) {
  if (text.find("NaN") == text.npos && text.find("Infinity") == text.npos) return std::nullopt;
  std::string marked;
  marked.reserve(text.size());
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\' && at + 1 < text.size()) {
      marked.append(text.substr(at++, 2));
      continue;
    }
    in_string ^= c == '"';
    std::string_view word;
    if (!in_string && (c == 'N' || c == 'I' || c == '-'))
      for (std::string_view known : kWords)
        if (text.substr(at).starts_with(known)) word = known;
    if (word.empty()) {
      marked += c;
    } else {
      marked += mark_of(word);
      at += word.size() - 1;
    }
  }
  return marked;
}

std::string unmarked_python_numbers(std::string text) {
  for (std::string_view word : kWords) {
    const std::string mark = mark_of(word);
    for (size_t at = 0; (at = text.find(mark, at)) != text.npos; at += word.size())
      text.replace(at, mark.size(), word);
  }
  return text;
}

}  // namespace qcts
