// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <tuple>

#include "reports/failure_title.h"
#include "suites/run/summary/summary.h"

namespace qcts {
namespace {

constexpr size_t kGroupsInFull = 3, kGroupsNamed = 8, kReasonBytes = 600;
constexpr std::string_view kHypothesis = "hypothesis: ";

// The kinds and operations of a group: "numerics.linear, numerics.dequantize".
std::string questions_of(const Group& group) {
  std::set<std::tuple<Kind, Op>> questions;
  for (const Verdict* verdict : group.verdicts) questions.emplace(verdict->case_id.kind, verdict->case_id.op);
  std::string text;
  for (const auto& [kind, op] : questions)
    text += (text.empty() ? "" : ", ") + std::string(kind_name(kind)) + "." + std::string(op_name(op));
  return text;
}

void print_element(const Mismatch& m, Printout& out) {
  out.text(m.where + ": want " + m.want + ", got " + m.got + " (" + std::to_string(m.count) + " of " +
               std::to_string(m.total) + " differ)",
           4);
}

std::string count_of(const Group& group, size_t all) {
  return std::to_string(group.verdicts.size()) + " of " + std::to_string(all);
}

void print_group(const Group& group, size_t all, Printout& out) {
  const Verdict& smallest = *group.verdicts.front();
  out.blank();
  out.text(count_of(group, all) + ": " + std::string(status_name(group.status)) + " of " + group.provider +
               " in " + questions_of(group),
           2, Ink::red);
  if (group.hypothesis.empty()) out.text(failure_title(group), 4, Ink::bold);
  // The hypothesis says it all; otherwise the reason does.
  const size_t hypothesis = smallest.reason.find(kHypothesis);
  if (hypothesis != std::string::npos) out.text(smallest.reason.substr(hypothesis), 4, Ink::bold);
  out.text(smallest.full_id(), 4);
  if (smallest.mismatch) print_element(*smallest.mismatch, out);
  const std::string details = hypothesis == std::string::npos ? failure_details(group) : "";
  if (!details.empty()) out.text(clipped_to(details, kReasonBytes), 4);
  out.command(smallest.rerun, 4);
}

}  // namespace

std::vector<Group> failure_groups(const RunReport& report) {
  std::vector<const Verdict*> blocking;
  for (const Verdict& verdict : report.verdicts)
    if (blocks_conformance(verdict, report.gate_latency)) blocking.push_back(&verdict);
  std::vector<Group> groups = groups_of(blocking, report.gate_latency);
  std::ranges::stable_sort(groups, {}, [](const Group& group) {
    return std::tuple(urgency(group.status), group.verdicts.front()->case_id.kind == Kind::determinism,
                      group.hypothesis.empty());
  });
  return groups;
}

// The cause that matters most comes last, where a screen of 24 lines shows it: the first groups in full, then
// a line for each cause.
void print_failures(const RunReport& report, Printout& out) {
  const std::vector<Group> groups = failure_groups(report);
  if (groups.empty()) return;
  size_t all = 0;
  for (const Group& group : groups) all += group.verdicts.size();
  const size_t in_full = std::min(groups.size(), kGroupsInFull),
               named = std::min(groups.size(), kGroupsNamed);
  for (size_t i = in_full; i-- > 0;) print_group(groups[i], all, out);
  out.blank();
  out.text(std::to_string(all) + (all == 1 ? " failure" : " failures") + " with " +
               (groups.size() == 1 ? "one cause" : std::to_string(groups.size()) + " causes") +
               (groups.size() > kGroupsNamed
                    ? "; " + std::to_string(groups.size() - kGroupsNamed) + " of them only in the report"
                    : ""),
           0, Ink::bold);
  if (groups.size() == 1) return;
  for (size_t i = named; i-- > 0;)
    out.text(count_of(groups[i], all) + ": " + std::string(status_name(groups[i].status)) + " of " +
                 groups[i].provider + ": " + failure_title(groups[i]),
             2);
}

}  // namespace qcts
