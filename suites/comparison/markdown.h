// SPDX-License-Identifier: BSD-3-Clause
// Makes texts of verdicts safe for Markdown tables.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

// Escapes everything that Markdown or HTML would interpret. The result is one line.
std::string markdown_text(std::string_view text);
// Returns the text as a code span for a cell of a table, or "" for an empty text.
// Escapes vertical bars, because GitHub's tables need that even in code.
std::string code_span(std::string_view text);

}  // namespace qcts
