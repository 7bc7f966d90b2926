// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/wrong_places.h"

#include <algorithm>
#include <optional>
#include <set>

namespace qcts {
namespace {

// Does a trait tell the wrong elements from the right ones? Two in three of those that it holds for are
// wrong, or one in two where it holds for few.
bool tells_apart(uint64_t wrong, uint64_t right, uint64_t all) {
  return 2 * right <= wrong || (right <= wrong && 4 * (right + wrong) <= all);
}

// The wrong elements and how far they reach.
struct Seen {
  std::vector<GridPlace> wrong;
  uint64_t right = 0;
};

Seen seen_in(const WrongGrid& grid) {
  Seen seen;
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      if (grid.wrong[static_cast<size_t>(row * grid.columns + column)])
        seen.wrong.push_back({row, column});
      else
        ++seen.right;
  return seen;
}

using IndexOf = int64_t (*)(const GridPlace&);
int64_t row_of(const GridPlace& place) { return place.row; }
int64_t column_of(const GridPlace& place) { return place.column; }

// Adds the parts of one axis that hold all wrong elements, the narrowest first.
void add_axis(const std::vector<GridPlace>& wrong, IndexOf index, int64_t count, const std::string& word,
              std::vector<PlaceTrait>& traits) {
  if (count < 2) return;
  const auto [low, high] = std::ranges::minmax(wrong, {}, index);
  const int64_t first = index(low), last = index(high);
  if (first == last) {
    const std::string name =
        first == count - 1 ? "in the last " + word : "in " + word + " " + std::to_string(first);
    traits.push_back({name, [=](const GridPlace& p) { return index(p) == first; }});
    return;
  }
  for (const int64_t period : {64, 32, 16, 8, 4, 2}) {
    std::set<int64_t> rest;
    for (const GridPlace& place : wrong) rest.insert(index(place) % period);
    if (rest.size() != 1 || last - first < 2 * period) continue;
    const int64_t only = *rest.begin();
    traits.push_back(
        {"in every " + word + " that is " + std::to_string(only) + " modulo " + std::to_string(period),
         [=](const GridPlace& p) { return index(p) % period == only; }});
    break;
  }
  if (first > 0 && last < count - 1)
    traits.push_back({"in " + word + "s " + std::to_string(first) + " to " + std::to_string(last),
                      [=](const GridPlace& p) { return index(p) >= first && index(p) <= last; }});
  if (first > 0)
    traits.push_back({"in " + word + "s from " + std::to_string(first) + " on",
                      [=](const GridPlace& p) { return index(p) >= first; }});
  if (last < count - 1)
    traits.push_back({"in " + word + "s up to " + std::to_string(last),
                      [=](const GridPlace& p) { return index(p) <= last; }});
}

std::vector<PlaceTrait> parts_of(const WrongGrid& grid, const std::vector<GridPlace>& wrong) {
  std::vector<PlaceTrait> traits;
  add_axis(wrong, row_of, grid.rows, "row", traits);
  add_axis(wrong, column_of, grid.columns, grid.column_word, traits);
  if (const int64_t group = grid.group; group > 1 && group < grid.columns) {
    traits.push_back({"in the first " + grid.column_word + " of a group",
                      [=](const GridPlace& p) { return p.column % group == 0; }});
    traits.push_back({"in the last " + grid.column_word + " of a group",
                      [=](const GridPlace& p) { return p.column % group == group - 1; }});
  }
  return traits;
}

uint64_t right_among(const WrongGrid& grid, const std::function<bool(const GridPlace&)>& holds) {
  uint64_t right = 0;
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      right += !grid.wrong[static_cast<size_t>(row * grid.columns + column)] && holds({row, column});
  return right;
}

struct Rated {
  const PlaceTrait* trait;
  uint64_t right;  // elements for which it holds though they are right
};

}  // namespace

std::string describe_places(const WrongGrid& grid, std::span<const PlaceTrait> values) {
  const Seen seen = seen_in(grid);
  if (seen.wrong.size() < 2 || seen.right < 2) return "";
  std::vector<PlaceTrait> traits(values.begin(), values.end());
  std::ranges::move(parts_of(grid, seen.wrong), std::back_inserter(traits));
  std::vector<Rated> rated;
  for (const PlaceTrait& trait : traits)
    if (std::ranges::all_of(seen.wrong, trait.holds))
      rated.push_back({&trait, right_among(grid, trait.holds)});
  if (rated.empty()) return "";
  const Rated best = std::ranges::min(rated, {}, &Rated::right);
  if (best.right == 0) return "wrong exactly " + best.trait->name;
  for (const Rated& other : rated) {
    if (other.trait == best.trait || other.right == seen.right) continue;
    const auto both = [&](const GridPlace& p) { return best.trait->holds(p) && other.trait->holds(p); };
    if (right_among(grid, both) == 0)
      return "wrong exactly " + best.trait->name + " and " + other.trait->name;
  }
  if (best.right == seen.right || !tells_apart(seen.wrong.size(), best.right, grid.wrong.size())) return "";
  return "wrong only " + best.trait->name + " (" + std::to_string(seen.wrong.size()) + " of " +
         std::to_string(seen.wrong.size() + best.right) + " such elements)";
}

}  // namespace qcts
