// SPDX-License-Identifier: BSD-3-Clause
// The result of comparing the contents of two files. Every difference has a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace qcts {

// One value that differs.
struct ContentDifference {
  std::string path;   // "optimizer.param_groups[0].lr"; empty: the object that the file holds
  std::string field;  // "dtype", "row 3, column 17"; empty: the value itself
  std::string a, b;
  uint64_t count = 1, total = 1;  // elements that differ, and elements compared

  // Returns "PATH: FIELD".
  std::string where() const {
    if (path.empty()) return field.empty() ? "the object" : field;
    return field.empty() ? path : path + ": " + field;
  }
};

// Keeps the first differences and counts all of them.
class ContentDifferences {
 public:
  static constexpr size_t kMostKept = 1000;

  void add(ContentDifference difference) {
    if (++count_ <= kMostKept) kept_.push_back(std::move(difference));
  }
  void add_all(const ContentDifferences& more) {
    for (const ContentDifference& difference : more.kept_) add(difference);
    count_ += more.count_ - more.kept_.size();
  }
  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }
  const std::vector<ContentDifference>& kept() const { return kept_; }

 private:
  std::vector<ContentDifference> kept_;
  uint64_t count_ = 0;
};

struct ContentFindings {
  ContentDifferences different;  // differences in payload, attributes and values (E2)
  ContentDifferences spelling;   // values that are equal but written differently
  // Values that only one file holds, because the other's container or dialect cannot hold them.
  ContentDifferences not_comparable;
};

}  // namespace qcts
