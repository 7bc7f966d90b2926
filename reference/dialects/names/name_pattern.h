// SPDX-License-Identifier: BSD-3-Clause
// Regular expressions over tensor names, as Python's re.search finds them. Supported are literals, classes,
// groups, alternatives, greedy * + ?, anchors, and lookahead and lookbehind assertions.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

struct NameMatch {
  size_t begin = 0, end = 0;  // of the matched text
  size_t branch = 0;          // index of the alternative that matched
  std::vector<std::string_view>
      groups;  // the branch's capturing groups, starting at 1; groups[0] is the whole match
};

class NamePattern {
 public:
  // Tries the branches in this order at each place of a name.
  // Throws std::invalid_argument for syntax that is not supported.
  explicit NamePattern(const std::vector<std::string>& branches);
  // Returns the leftmost match. Returns nullopt too for a name of more than 1024 bytes, or after 20,000
  // steps.
  std::optional<NameMatch> search(std::string_view name) const;

 private:
  enum class Kind : uint8_t { set, begin, end, group, ahead, behind };
  struct Atom {
    Kind kind = Kind::set;
    std::bitset<256> set;                  // Kind::set: the bytes that match
    std::vector<std::vector<Atom>> inner;  // the alternatives of a group or assertion
    int capture = 0;                       // number of a capturing group; 0: none
    bool negative = false;                 // of an assertion
    size_t min = 1, max = 1;               // repetitions
  };
  using Sequence = std::vector<Atom>;
  class Parser;
  class Matcher;

  static std::string literal_of(const Sequence& atoms);

  std::vector<Sequence> branches_;
  std::vector<std::string> literals_;  // for each branch, text that each of its matches holds; may be empty
};

}  // namespace qcts
