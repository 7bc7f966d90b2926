// SPDX-License-Identifier: BSD-3-Clause
// Suggests the closest known word for a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qcts {

// Counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
// The count is the optimal string alignment. A '*' in a matches anything, a '?' any character.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the candidate with the smallest distance, or the first such candidate on a tie.
// Returns an empty string if there are no candidates.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns true if the candidate is so close that the user probably meant it.
bool is_near(std::string_view word, std::string_view candidate);

// Returns " (did you mean 'X'?)".
// If nothing is close, returns " (known: a, b, c)", or an empty string if there are more than 20 candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace qcts
