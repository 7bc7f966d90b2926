// SPDX-License-Identifier: BSD-3-Clause
// The right word for a wrong one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qcts {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string alignment);
// a '*' in a stands for anything, a '?' for any character.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance, the first in order among equals; empty without candidates.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// So near that one may be meant by the other.
bool is_near(std::string_view word, std::string_view candidate);

// " (did you mean 'X'?)"; where nothing is near " (known: a, b, c)", or nothing of more than 20 candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace qcts
