// SPDX-License-Identifier: BSD-3-Clause
// Joins texts such as "torchao 0.7.0 to 0.15.0" and "torchao 0.5.0 and 0.6.1" into one list of versions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qcts::cli {

class VersionRanges {
 public:
  // Adds the library and the versions that the text begins with. Whatever follows them is ignored.
  // A text whose second word does not begin with a digit names a library without versions.
  void add(std::string_view text);
  // Returns "torchao 0.5.0, 0.6.1, 0.7.0 to 0.15.0"; libraries are in the order of their first mention.
  // Ranges that overlap are one, and versions in a range are not named again.
  std::string text() const;

 private:
  struct Range {
    std::string low, high;  // one version: both the same
  };
  struct Library {
    std::string name;
    std::vector<Range> ranges;  // ascending, no two overlap
  };
  Library& library(const std::string& name);

  std::vector<Library> libraries_;
};

}  // namespace qcts::cli
