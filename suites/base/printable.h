// SPDX-License-Identifier: BSD-3-Clause
// Texts of files on a terminal: names that hold control characters may not steer it, nor break a line.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

// Control characters, bytes that are no UTF-8, and the characters that turn or hide text are escaped: "\n",
// "\x1b", "\u202e".
std::string printable(std::string_view text);

// The same for dumped JSON, which has its own escapes and its own line ends: what its writer passes on as it
// is becomes "\u009b".
std::string printable_json(std::string_view json);

}  // namespace qcts
