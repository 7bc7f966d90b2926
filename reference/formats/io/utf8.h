// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace qcts {

// Is `text` well-formed UTF-8 (RFC 3629)? `surrogates` also allows the three-byte forms of U+D800..U+DFFF:
// Python's "surrogatepass", which pickle uses.
bool is_utf8(std::string_view text, bool surrogates = false);

// Is `text` well-formed, with every character at most U+00FF?
bool is_latin1(std::string_view text);

}  // namespace qcts
