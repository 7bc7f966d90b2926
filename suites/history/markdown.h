// SPDX-License-Identifier: BSD-3-Clause
// Texts of verdicts in Markdown tables.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

// Escapes what Markdown or HTML would interpret. One line.
std::string markdown_text(std::string_view text);
// Returns the text as a code span for a cell of a table; "" if it is empty. A vertical bar is escaped, which
// GitHub's tables need even in code.
std::string code_span(std::string_view text);

}  // namespace qcts
