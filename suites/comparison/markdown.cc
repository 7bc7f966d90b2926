// SPDX-License-Identifier: BSD-3-Clause
#include "suites/comparison/markdown.h"

#include <algorithm>

#include "suites/base/printable.h"

namespace qcts {

std::string markdown_text(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_{}[]()<>#+!|~&").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code_span(std::string_view text) {
  if (text.empty()) return {};
  std::string code;
  size_t ticks = 0, longest = 0;
  for (const char c : printable(text)) {
    ticks = c == '`' ? ticks + 1 : 0;
    longest = std::max(longest, ticks);
    if (c == '|') code += '\\';
    code += c;
  }
  // A span opens and closes with more backticks than any run of them within.
  const std::string fence(longest + 1, '`');
  const std::string space = longest == 0 ? "" : " ";
  return fence + space + code + space + fence;
}

}  // namespace qcts
