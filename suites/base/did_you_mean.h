// SPDX-License-Identifier: BSD-3-Clause
// Suggests the closest known word for a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qcts {

// Counts the insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string
// alignment); a '*' in a matches anything, a '?' any character.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the candidate with the smallest distance, the first one on a tie; empty if there are no candidates.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns whether the candidate is close enough to be what was meant.
bool is_near(std::string_view word, std::string_view candidate);

// Returns " (did you mean 'X'?)"; if nothing is close, " (known: a, b, c)", or an empty string for more than
// 20 candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace qcts
