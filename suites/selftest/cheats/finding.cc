// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cheats/finding.h"

#include <algorithm>
#include <array>

namespace qcts::cheats {
namespace {

constexpr std::array<std::string_view, kFindingCount> kNames = {"nothing",
                                                                "computes_nothing",
                                                                "reach_refused",
                                                                "tampers_in_vain",
                                                                "answers_out_of_turn",
                                                                "constant_answer",
                                                                "copies_input",
                                                                "skips_part",
                                                                "skips_terms",
                                                                "skips_calls",
                                                                "leaves_earlier_answer",
                                                                "remembers_answer",
                                                                "remembers_weight",
                                                                "changes_later",
                                                                "leaves_child",
                                                                "writes_input",
                                                                "narrow_accumulation",
                                                                "bounds_nothing",
                                                                "refuses_what_it_fails",
                                                                "too_many_threads",
                                                                "wrong_while_timed",
                                                                "honest_clock_kept",
                                                                "other"};

struct CaveatRow {
  Caveat caveat;
  FindingId finding;
};
// The judge's own words for what it recognized, most telling first.
constexpr CaveatRow kCaveatRows[] = {
    {Caveat::wrote_later, FindingId::changes_later},
    {Caveat::stopped_writing, FindingId::skips_calls},
    {Caveat::left_earlier_answer, FindingId::leaves_earlier_answer},
    {Caveat::earlier_answer, FindingId::remembers_answer},
    {Caveat::wrote_nothing, FindingId::computes_nothing},
    {Caveat::same_everywhere, FindingId::constant_answer},
    {Caveat::copied_input, FindingId::copies_input},
    {Caveat::wrote_part, FindingId::skips_part},
    {Caveat::narrow_sum, FindingId::narrow_accumulation},
    {Caveat::refused_by_values, FindingId::refuses_what_it_fails},
    {Caveat::unnoticed_change, FindingId::bounds_nothing},
};

struct TextRow {
  Status status;
  std::string_view begin, inside;  // of the reason
  FindingId finding;
};
// Only the reason tells faults that end a case before there is an answer, and faults of the clock.
constexpr TextRow kTextRows[] = {
    {Status::fail, "wrote into its input ", "", FindingId::writes_input},
    {Status::fail, "used ", " after run() had returned", FindingId::changes_later},
    {Status::fail, "", " changed after run() had returned", FindingId::changes_later},
    {Status::fail, "left a child process running", "", FindingId::leaves_child},
    {Status::crash, "its host answered out of turn", "", FindingId::answers_out_of_turn},
    {Status::fail, "wrong while timed", "", FindingId::wrong_while_timed},
    {Status::fail, "correct on the timed data, wrong on other data", "", FindingId::wrong_while_timed},
    {Status::fail, "correct before timing, wrong afterwards", "", FindingId::wrong_while_timed},
    {Status::fail, "not timed: ", " threads", FindingId::too_many_threads},
    {Status::fail, "kept ", " threads busy while it was timed", FindingId::too_many_threads},
    {Status::fail, "wrong when one element of x has changed at the same address", "",
     FindingId::remembers_answer},
    {Status::fail, "", "their products are missing", FindingId::skips_terms},
};
// Only the weight changed, so an answer to earlier data is an answer to an earlier weight.
constexpr TextRow kWeightRows[] = {
    {Status::fail, "wrong once the weight's last code changed at the same address", "",
     FindingId::remembers_weight},
    {Status::fail, "wrong once the weight changed at the same addresses", "", FindingId::remembers_weight},
};

bool fits(const TextRow& row, const Verdict& verdict) {
  return verdict.status == row.status && verdict.reason.starts_with(row.begin) &&
         verdict.reason.find(row.inside) != verdict.reason.npos;
}

FindingId with_attempts(FindingId finding, std::span<const Attempt> attempts) {
  if (finding != FindingId::computes_nothing || attempts.empty()) return finding;
  const bool all_refused = std::ranges::none_of(attempts, &Attempt::was_done);
  return all_refused ? FindingId::reach_refused : FindingId::tampers_in_vain;
}

double measured(const Verdict& verdict, std::string_view name) {
  const auto found = std::ranges::find(verdict.measures, name, &Measure::name);
  return found == verdict.measures.end() ? 0 : found->value;
}

bool kept_its_clock(const Verdict& verdict, std::span<const Attempt> attempts, double least_us) {
  return least_us > 0 && std::ranges::any_of(attempts, &Attempt::was_done) &&
         measured(verdict, "median_us") >= least_us;
}

}  // namespace

std::string_view finding_name(FindingId finding) { return kNames[static_cast<size_t>(finding)]; }

std::optional<FindingId> finding_from_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FindingId>(found - kNames.begin());
}

std::vector<Attempt> attempts_in(std::string_view log) {
  static constexpr std::string_view kMark = "attempt: ", kDone = "done";
  std::vector<Attempt> found;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const size_t end = line.find(": ", kMark.size());
    if (!line.starts_with(kMark) || end == line.npos) continue;
    Attempt attempt{std::string(line.substr(kMark.size(), end - kMark.size())), false,
                    std::string(line.substr(end + 2))};
    attempt.was_done = attempt.how == kDone;
    const auto same = [&](const Attempt& each) {
      return each.what == attempt.what && each.how == attempt.how;
    };
    if (std::ranges::none_of(found, same)) found.push_back(std::move(attempt));
  }
  return found;
}

FindingId finding_of(const Verdict& verdict, std::span<const Attempt> attempts, double least_us) {
  if (verdict.status == Status::pass)
    return kept_its_clock(verdict, attempts, least_us) ? FindingId::honest_clock_kept : FindingId::nothing;
  if (verdict.status == Status::not_supported) return FindingId::nothing;
  for (const TextRow& row : kWeightRows)
    if (fits(row, verdict)) return row.finding;
  for (const CaveatRow& row : kCaveatRows)
    if (verdict.has(row.caveat)) return with_attempts(row.finding, attempts);
  for (const TextRow& row : kTextRows)
    if (fits(row, verdict)) return row.finding;
  return FindingId::other;
}

FindingId finding_of(std::span<const Verdict> verdicts, std::span<const Attempt> attempts, double least_us) {
  for (const Verdict& verdict : verdicts)
    if (const FindingId finding = finding_of(verdict, attempts, least_us); finding != FindingId::nothing)
      return finding;
  return FindingId::nothing;
}

}  // namespace qcts::cheats
