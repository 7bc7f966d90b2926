// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <tuple>

#include "suites/judge/latency/latency_measures.h"
#include "suites/run/summary/summary.h"

namespace qcts {
namespace {

constexpr size_t kRowsShown = 30;

std::string measured(const Verdict& verdict, std::string_view name, int digits, double factor = 1,
                     const std::string& unit = "") {
  const Measure* measure = find_measure(verdict, name);
  return measure == nullptr ? "-" : fixed(measure->value * factor, digits) + unit;
}

// The rate that bounds the kernel: of its arithmetic if it is closer to that peak than to memory's.
std::string rate_of(const Verdict& verdict) {
  const Measure *peak = find_measure(verdict, "share_of_peak"),
                *memory = find_measure(verdict, "share_of_probe");
  if (peak != nullptr && (memory == nullptr || peak->value > memory->value))
    return measured(verdict, "rate", 3, 1e-3, " TFLOP/s");
  return measured(verdict, "bandwidth", 1, 1, " GB/s");
}

std::string trust_of(const Verdict& verdict, const LatencyTrust& run) {
  const Measure* itself = find_measure(verdict, "ratio_to_itself");
  if (run.suspended) return "suspended";
  if (verdict.reason.find("not to be trusted") != std::string::npos) return "doubtful";
  if (itself == nullptr || !itself->low || !itself->high) return "too few";
  return "trusted";
}

// The claims that a verdict does not hold, those that fail first: "slower than dense" is never silent.
void print_speed_claims(const RunReport& report, Printout& out) {
  constexpr size_t kClaimsShown = 10;
  size_t held = 0;
  std::vector<std::string> failed, undecided;
  for (const Verdict& verdict : report.verdicts)
    for (const SpeedClaim& claim : verdict.speed) {
      const std::string whose = verdict.provider + "_" + verdict.variant + ": " + claim_text(claim) +
                                (verdict.is_peer  ? " (peer)"
                                 : claim.required ? ""
                                                  : " (not required)");
      if (claim.status == Status::pass)
        ++held;
      else
        (claim.status == Status::fail ? failed : undecided).push_back(whose);
    }
  const size_t open = undecided.size(), slower = failed.size();
  if (held + slower + open == 0) return;
  out.text("speed: " + std::to_string(held) + " of " + std::to_string(held + slower + open) +
               " claims hold, " + std::to_string(slower) + " slower, " + std::to_string(open) + " undecided",
           4);
  failed.insert(failed.end(), undecided.begin(), undecided.end());
  for (size_t i = 0; i < failed.size() && i < kClaimsShown; ++i) out.text(failed[i], 6);
  if (failed.size() > kClaimsShown)
    out.text("and " + std::to_string(failed.size() - kClaimsShown) + " more in the report", 6);
}

std::string case_of(const Verdict& verdict) {
  const CaseId& id = verdict.case_id;
  return std::string(op_name(id.op)) + "/" + id.scheme + "/" + id.input;
}

}  // namespace

void print_latency(const RunReport& report, Printout& out) {
  std::map<std::string, size_t> counts;
  std::vector<const Verdict*> timed;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.case_id.kind != Kind::latency) continue;
    ++counts[std::string(status_name(verdict.status))];
    if (find_measure(verdict, "median_us") != nullptr) timed.push_back(&verdict);
  }
  if (counts.empty()) return;
  std::string title = std::string("latency") + (report.gate_latency ? " (gates)" : " (does not gate)") + ":";
  for (const auto& [status, count] : counts) title += " " + std::to_string(count) + " " + status + ",";
  title.pop_back();
  out.blank();
  out.text(title, 2);
  std::ranges::sort(timed, {}, [](const Verdict* v) {
    return std::tuple(case_of(*v), find_measure(*v, "median_us")->value);
  });
  std::vector<TableRow> rows;
  std::string last;
  for (size_t i = 0; i < timed.size() && i < kRowsShown; ++i) {
    const Verdict& verdict = *timed[i];
    if (case_of(verdict) != last) rows.push_back({last = case_of(verdict), "", "", "", "", ""});
    rows.push_back(
        {"  " + verdict.provider + "_" + verdict.variant + (verdict.is_peer ? " (peer)" : ""),
         measured(verdict, "median_us", 1), rate_of(verdict), measured(verdict, "share_of_roof", 0, 100, "%"),
         measured(verdict, find_measure(verdict, "speedup_before") ? "speedup_before" : "ratio_to_dense", 2,
                  1, "x"),
         trust_of(verdict, report.latency_trust)});
  }
  if (!rows.empty())
    out.table({{"case"},
               {"median us", Align::right},
               {"rate", Align::right},
               {"of roof", Align::right},
               {"to dense", Align::right},
               {"trust"}},
              rows, 4);
  if (timed.size() > kRowsShown)
    out.text("and " + std::to_string(timed.size() - kRowsShown) + " more in the report", 4);
  if (rows.size() > 2)
    out.text("each row was timed in separate rounds: compare ratios and shares, not microseconds", 4);
  print_speed_claims(report, out);
  const LatencyTrust& trust = report.latency_trust;
  if (trust.measured != 0)
    out.text("against themselves " + std::to_string(trust.alarms) + " of " + std::to_string(trust.measured) +
                 " differed (chance allows " + std::to_string(trust.allowed) + ")" +
                 (trust.suspended ? ": latency is ignored in this run" : ""),
             4);
}

}  // namespace qcts
