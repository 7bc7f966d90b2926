// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/version_ranges.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace qcts::cli {
namespace {

bool begins_with_digit(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front()));
}

// The numbers of "0.17.0". A commit such as "006b7b9" is one text, which sorts by itself.
std::pair<std::vector<unsigned long>, std::string> key_of(const std::string& version) {
  if (version.find_first_not_of("0123456789.") != std::string::npos) return {{}, version};
  std::vector<unsigned long> numbers;
  std::istringstream parts(version);
  for (std::string part; std::getline(parts, part, '.');)
    numbers.push_back(part.empty() ? 0 : std::stoul(part));
  return {numbers, ""};
}

bool is_before(const std::string& a, const std::string& b) { return key_of(a) < key_of(b); }

}  // namespace

VersionRanges::Library& VersionRanges::library(const std::string& name) {
  const auto found = std::ranges::find(libraries_, name, &Library::name);
  return found == libraries_.end() ? libraries_.emplace_back(Library{name, {}}) : *found;
}

void VersionRanges::add(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string name, version, joint, last;
  words >> name >> version >> joint >> last;
  if (name.ends_with(':')) name.pop_back();
  std::vector<Range>& ranges = library(name).ranges;
  if (!begins_with_digit(version)) return;
  const auto insert = [&](Range added) {
    std::erase_if(ranges, [&](const Range& range) {
      if (is_before(range.high, added.low) || is_before(added.high, range.low)) return false;
      added = {std::min(added.low, range.low, is_before), std::max(added.high, range.high, is_before)};
      return true;
    });
    ranges.insert(std::ranges::upper_bound(ranges, added.low, is_before, &Range::low), added);
  };
  const bool two = begins_with_digit(last);
  insert({version, two && joint == "to" ? last : version});
  if (two && joint == "and") insert({last, last});
}

std::string VersionRanges::text() const {
  std::string text;
  for (const Library& library : libraries_) {
    text += (text.empty() ? "" : "; ") + library.name;
    for (const Range& range : library.ranges)
      text += (&range == &library.ranges.front() ? " " : ", ") + range.low +
              (range.low == range.high ? "" : " to " + range.high);
  }
  return text;
}

}  // namespace qcts::cli
