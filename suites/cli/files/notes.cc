// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/notes.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <unordered_map>

#include "suites/base/terminal.h"

namespace qcts::cli {
namespace {

constexpr size_t kMostOfAKind = 8;

// "a.weight:" and "l2._weight_qdata" are names, and so is a word before a colon.
bool is_name(const std::string& word) {
  const size_t dot = word.find('.');
  const bool inner_dot = dot != std::string::npos && dot > 0 && dot + 1 < word.size();
  return inner_dot || word.ends_with(':') || word.find('_') != std::string::npos;
}

// The note without its names and numbers.
std::string sort_of_note(const std::string& note) {
  std::istringstream words(note);
  std::string kind;
  for (std::string word; words >> word;) {
    const bool varies =
        is_name(word) || std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c); });
    kind += varies ? "*" : word;
    kind += ' ';
  }
  return kind;
}

}  // namespace

std::vector<std::string> condensed(const std::vector<std::string>& notes) {
  if (notes.size() <= kMostOfAKind) return notes;
  std::unordered_map<std::string, size_t> counts;
  std::vector<std::string> kinds;
  kinds.reserve(notes.size());
  for (const std::string& note : notes) ++counts[kinds.emplace_back(sort_of_note(note))];
  std::vector<std::string> shown;
  for (size_t i = 0; i < notes.size(); ++i) {
    size_t& count = counts[kinds[i]];
    if (count == 0) continue;  // the first reports it
    const bool one_line = count > kMostOfAKind;
    shown.push_back(one_line ? notes[i] + " (and " + with_commas(static_cast<double>(count - 1)) +
                                   " more notes like this)"
                             : notes[i]);
    if (one_line) count = 0;
  }
  return shown;
}

}  // namespace qcts::cli
