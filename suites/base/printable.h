// SPDX-License-Identifier: BSD-3-Clause
// Makes texts from files safe for a terminal.
// Control characters in a name may neither control the terminal nor break a line.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

// Escapes control characters, bytes that are not UTF-8, and characters that reverse or hide text.
// The escapes are "\n", "\x1b", "\u202e" and so on.
std::string printable(std::string_view text);

// Escapes the same characters in formatted JSON, which has its own escapes and line ends.
// Characters that the JSON writer leaves unchanged become escapes such as "\u009b".
std::string printable_json(std::string_view json);

}  // namespace qcts
