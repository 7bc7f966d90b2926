// SPDX-License-Identifier: BSD-3-Clause
// Python's json module writes NaN, Infinity and -Infinity, which are not JSON: configs of Mamba models have
// "time_step_limit": [0.0, Infinity].
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qcts {

// Returns the text with a marked string for each of the three words outside strings; nullopt where it has
// none of them.
std::optional<std::string> marked_python_numbers(std::string_view text);

// The inverse, in JSON made from such text.
std::string unmarked_python_numbers(std::string text);

}  // namespace qcts
