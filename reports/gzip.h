// SPDX-License-Identifier: BSD-3-Clause
// Compresses with gzip, for the record of a finished run and for the data in the page.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

// The same text always gives the same bytes, because the header has no time and no name.
std::string gzipped(std::string_view text);
// Returns the text of one or more gzip members.
// Throws std::runtime_error if they are corrupt or truncated, or if they hold more than 4 GiB.
std::string gunzipped(std::string_view bytes);
bool is_gzip(std::string_view bytes);  // checks the first two bytes

}  // namespace qcts
