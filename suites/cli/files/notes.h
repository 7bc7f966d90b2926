// SPDX-License-Identifier: BSD-3-Clause
// Puts notes of one kind into one line.
#pragma once

#include <string>
#include <vector>

namespace qcts::cli {

// Returns the notes in order. Of more than eight that differ only in names and numbers, the first stands for
// all, with the number of the others.
std::vector<std::string> condensed(const std::vector<std::string>& notes);

}  // namespace qcts::cli
