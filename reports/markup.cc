// SPDX-License-Identifier: BSD-3-Clause
#include "reports/markup.h"

namespace qcts {

std::string markup_text(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\t' || c == '\n' || c == '\r')
      out += "&#" + std::to_string(static_cast<int>(c)) + ";";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += '?';
    else if (text.substr(i, 2) == "\xEF\xBF" &&
             (text.substr(i + 2, 1) == "\xBE" || text.substr(i + 2, 1) == "\xBF"))
      out += '?', i += 2;
    else
      out += c;
  }
  return out;
}

}  // namespace qcts
