// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace qcts {

// Returns true if `text` is well-formed UTF-8 (RFC 3629).
// With `surrogates`, the three-byte forms of U+D800..U+DFFF are well-formed too.
// Python calls this "surrogatepass"; pickle uses it.
bool is_utf8(std::string_view text, bool surrogates = false);

// Returns true if `text` is well-formed and every character is at most U+00FF.
bool is_latin1(std::string_view text);

}  // namespace qcts
