// SPDX-License-Identifier: BSD-3-Clause
// Escapes text within XML and HTML, as content or as an attribute in double quotes.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

// Replaces the five characters of markup by references. Replaces line feeds and tabs too, because a reader
// would turn them into spaces within an attribute. Characters that XML 1.0 does not allow (control
// characters, U+FFFE, U+FFFF) become "?".
std::string markup_text(std::string_view text);

}  // namespace qcts
