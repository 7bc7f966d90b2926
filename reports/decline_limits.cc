// SPDX-License-Identifier: BSD-3-Clause
#include "reports/decline_limits.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

namespace qcts {
namespace {

constexpr std::array<const char*, 12> kNames = {"weight", "x",         "y", "bias", "types", "policy",
                                                "layout", "container", "m", "n",    "k",     "group"};

constexpr LimitField kWordFields[] = {LimitField::x_dtype,  LimitField::w_dtype,    LimitField::y_dtype,
                                      LimitField::policy,   LimitField::bias_dtype, LimitField::layout,
                                      LimitField::container};
constexpr LimitField kSizeFields[] = {LimitField::m, LimitField::n, LimitField::k, LimitField::group};

const std::string& word_of(const Asked& asked, LimitField field) {
  switch (field) {
    case LimitField::w_dtype:
      return asked.w_dtype;
    case LimitField::x_dtype:
      return asked.x_dtype;
    case LimitField::y_dtype:
      return asked.y_dtype;
    case LimitField::bias_dtype:
      return asked.bias_dtype;
    case LimitField::policy:
      return asked.policy;
    case LimitField::layout:
      return asked.layout;
    default:
      return asked.container;
  }
}

std::optional<int64_t> size_of(const Asked& asked, LimitField field) {
  if (!asked.container.empty()) return std::nullopt;
  switch (field) {
    case LimitField::m:
      return asked.m;
    case LimitField::n:
      return asked.n;
    case LimitField::k:
      return asked.k;
    default:
      return asked.group;
  }
}

bool has_mixed_types(const Asked& asked) {
  std::set<std::string> types;
  for (const std::string* type : {&asked.w_dtype, &asked.x_dtype, &asked.y_dtype, &asked.bias_dtype})
    if (!type->empty()) types.insert(*type);
  return types.size() > 1;
}

bool differs(const Asked& asked, LimitField field) {
  const std::string& other = field == LimitField::x_dtype ? asked.w_dtype : asked.x_dtype;
  const std::string& own = word_of(asked, field);
  return !own.empty() && !other.empty() && own != other;
}

// Is there a case that the rule matches, and was every such case declined?
bool holds(const Limit& limit, std::span<const AskedCase> cases) {
  bool matched = false;
  for (const AskedCase& one : cases) {
    if (!limit.matches(*one.asked)) continue;
    if (!one.declined) return false;
    matched = true;
  }
  return matched;
}

void add_if_it_holds(Limit limit, std::span<const AskedCase> cases, std::vector<Limit>& rules) {
  if (holds(limit, cases)) rules.push_back(std::move(limit));
}

void add_words(std::span<const AskedCase> cases, std::vector<Limit>& rules) {
  for (const LimitField field : kWordFields) {
    std::set<std::string> words;
    for (const AskedCase& one : cases)
      if (one.declined && !word_of(*one.asked, field).empty()) words.insert(word_of(*one.asked, field));
    for (const std::string& word : words)
      add_if_it_holds({field, LimitRule::equal, word, 0, 0}, cases, rules);
    if (field == LimitField::x_dtype || field == LimitField::y_dtype || field == LimitField::bias_dtype)
      add_if_it_holds({field, LimitRule::differs, "", 0, 0}, cases, rules);
    if (field == LimitField::y_dtype)
      add_if_it_holds({LimitField::dtypes, LimitRule::mixed, "", 0, 0}, cases, rules);
  }
}

// The least divisor of `common`, other than 1, that excludes as many of the declined sizes as `common` does.
int64_t least_multiple(int64_t common, const std::vector<int64_t>& declined) {
  const auto excluded = [&](int64_t by) {
    return std::ranges::count_if(declined, [&](int64_t size) { return size % by != 0; });
  };
  int64_t least = common;
  for (int64_t by = 2; by <= common / by; ++by) {
    if (common % by != 0) continue;
    if (excluded(by) == excluded(common)) return by;
    if (excluded(common / by) == excluded(common)) least = std::min(least, common / by);
  }
  return least;
}

void add_sizes(std::span<const AskedCase> cases, std::vector<Limit>& rules) {
  for (const LimitField field : kSizeFields) {
    std::vector<int64_t> served, declined;
    for (const AskedCase& one : cases)
      if (const std::optional<int64_t> size = size_of(*one.asked, field))
        (one.declined ? declined : served).push_back(*size);
    if (served.empty() || declined.empty()) continue;
    const auto [least, most] = std::ranges::minmax(served);
    add_if_it_holds({field, LimitRule::above, "", most, 0}, cases, rules);
    add_if_it_holds({field, LimitRule::below, "", least, 0}, cases, rules);
    const int64_t common = std::accumulate(served.begin(), served.end(), int64_t{0},
                                           [](int64_t a, int64_t b) { return std::gcd(a, b); });
    if (common > 1)
      add_if_it_holds({field, LimitRule::no_multiple, "", least_multiple(common, declined), 0}, cases, rules);
  }
}

}  // namespace

bool Limit::matches(const Asked& asked) const {
  if (rule == LimitRule::equal) return word_of(asked, field) == word;
  if (rule == LimitRule::mixed) return has_mixed_types(asked);
  if (rule == LimitRule::differs) return differs(asked, field);
  const std::optional<int64_t> size = size_of(asked, field);
  if (!size) return false;
  return rule == LimitRule::above   ? *size > bound
         : rule == LimitRule::below ? *size < bound
                                    : *size % bound != 0;
}

std::string Limit::text() const {
  const std::string name = kNames[static_cast<size_t>(field)];
  switch (rule) {
    case LimitRule::equal:
      return name + " " + word;
    case LimitRule::mixed:
      return "mixed types";
    case LimitRule::differs:
      return name + " of a type other than " + (field == LimitField::x_dtype ? "the weight" : "x");
    case LimitRule::above:
      return name + " above " + std::to_string(bound);
    case LimitRule::below:
      return name + " below " + std::to_string(bound);
    default:
      return name + " not a multiple of " + std::to_string(bound);
  }
}

DeclineLimits limits_of(std::span<const AskedCase> cases) {
  std::vector<Limit> candidates;
  add_words(cases, candidates);
  add_sizes(cases, candidates);
  DeclineLimits found;
  for (size_t i = 0; i < cases.size(); ++i)
    if (cases[i].declined) found.irregular.push_back(i);
  while (!found.irregular.empty() && found.rules.size() < kMaxLimits) {
    const Limit* best = nullptr;
    uint64_t most = 0;
    for (const Limit& limit : candidates) {
      const auto explained = static_cast<uint64_t>(
          std::ranges::count_if(found.irregular, [&](size_t i) { return limit.matches(*cases[i].asked); }));
      if (explained > most) best = &limit, most = explained;
    }
    if (best == nullptr) break;
    found.rules.push_back(*best);
    found.rules.back().cases = most;
    std::erase_if(found.irregular, [&](size_t i) { return best->matches(*cases[i].asked); });
  }
  return found;
}

}  // namespace qcts
