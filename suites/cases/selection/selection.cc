// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/selection/selection.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

#include "reports/waivers.h"
#include "suites/base/did_you_mean.h"

namespace qcts {
namespace {

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Filters, each of which is the exact id of a case or a glob.
class Filters {
 public:
  Filters(const std::vector<std::string>& filters, const std::vector<Candidate>& candidates)
      : filters_(filters) {
    for (const std::string& filter : filters) exact_.push_back(names_exactly(filter, candidates));
  }
  bool any_matches(const CaseName& name) const {
    for (size_t i = 0; i < filters_.size(); ++i)
      if (exact_[i] ? name.full_id == filters_[i] || name.id.text() == filters_[i]
                    : glob_match("*" + filters_[i] + "*", name.full_id))
        return true;
    return false;
  }
  bool empty() const { return filters_.empty(); }

 private:
  const std::vector<std::string>& filters_;
  std::vector<bool> exact_;
};

uint32_t number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) value = 0;
  return value;
}

}  // namespace

bool Selection::is_everything() const {
  return filters.empty() && excludes.empty() && kinds.empty() && schemes.empty() && variant.empty() &&
         shards == 1;
}

void parse_shard(const std::string& text, Selection& selection) {
  const size_t slash = text.find('/');
  selection.shard = number(text.substr(0, slash));
  selection.shards = slash == text.npos ? 0 : number(text.substr(slash + 1));
  if (selection.shard < 1 || selection.shard > selection.shards)
    throw std::runtime_error("'" + text + "' is not a shard i/n with 1 <= i <= n");
}

bool names_exactly(const std::string& filter, const std::vector<Candidate>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.name.full_id == filter || c.name.id.text() == filter;
  });
}

std::vector<Candidate> select(const Selection& selection, std::vector<Candidate> candidates) {
  const Filters filters(selection.filters, candidates), excludes(selection.excludes, candidates);
  std::vector<Candidate> chosen;
  for (Candidate& candidate : candidates) {
    const CaseId& id = candidate.name.id;
    if (!selection.kinds.empty() && !is_one_of(std::string(kind_name(id.kind)), selection.kinds)) continue;
    if (!selection.schemes.empty() && !is_one_of(id.scheme, selection.schemes)) continue;
    if (!selection.variant.empty() && candidate.name.variant != selection.variant) continue;
    if (!filters.empty() && !filters.any_matches(candidate.name)) continue;
    if (excludes.any_matches(candidate.name)) continue;
    chosen.push_back(std::move(candidate));
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const Candidate& a, const Candidate& b) { return a.name.full_id < b.name.full_id; });
  if (selection.shards == 1) return chosen;
  std::vector<Candidate> shard;
  for (size_t i = selection.shard - 1; i < chosen.size(); i += selection.shards)
    shard.push_back(std::move(chosen[i]));
  return shard;
}

std::string nearest_id(const std::string& filter, const std::vector<Candidate>& candidates) {
  std::set<std::string> ids, full_ids, words;
  for (const Candidate& candidate : candidates) {
    const CaseId& id = candidate.name.id;
    ids.insert(id.text());
    full_ids.insert(candidate.name.full_id);
    const std::string kind(kind_name(id.kind)), op(op_name(id.op));
    words.insert({kind, op, id.scheme, id.input, kind + "." + op});
  }
  // A filter without a slash is part of an id.
  const bool piece = filter.find('/') == filter.npos;
  std::vector<std::string> pool;
  for (const auto& set : piece ? std::vector{words} : std::vector{ids, full_ids})
    pool.insert(pool.end(), set.begin(), set.end());
  std::string pattern = "*" + filter + "*";
  if (piece) std::erase_if(pattern, [](char c) { return c == '*' || c == '?'; });
  const std::string best = nearest(pattern, pool);
  return is_near(pattern, best) ? best : "";
}

}  // namespace qcts
