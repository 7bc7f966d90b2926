// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/summary.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include <unistd.h>

#include "reference/schemes/scheme.h"
#include "suites/base/printable.h"
#include "suites/cases/plan.h"
#include "suites/judge/latency_measures.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kFailuresShown = 4, kReasonsShown = 4, kFailuresWhileRunning = 10;
constexpr size_t kWidth = 110;

std::string clipped(std::string text, size_t width) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// "1,114,112"
std::string grouped(double value) {
  std::string digits = fixed(value, 0);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

void counts_line(const Json& counts, std::ostream& out) {
  out << " ";
  for (const auto& [status, count] : counts["by_status"].items())
    if (count.get<int64_t>() != 0 || status == "pass" || status == "fail")
      out << " " << count << " " << status << "  ";
  const Json& evidence = counts["passes_by_evidence"];
  out << "\n  passes: " << evidence["confirmed"] << " on real files, " << evidence["emulated"]
      << " on files with an emulated operation (not confirmed), " << evidence["reference"]
      << " on the reference, " << evidence["other"] << " other\n";
}

struct Cell {
  size_t passes = 0, blocking = 0, total = 0;
};

// The rows of the table: schemes if they fit on the screen, otherwise families.
class Rows {
 public:
  explicit Rows(const RunReport& report) {
    std::set<std::string> schemes;
    for (const Verdict& verdict : report.verdicts) schemes.insert(verdict.case_id.scheme);
    by_family_ = schemes.size() > kSchemesShown;
  }
  std::string of(const std::string& scheme) const {
    const Scheme* known = by_family_ ? find_scheme(scheme) : nullptr;
    return known == nullptr ? scheme : std::string(known->family());
  }
  const char* title() const { return by_family_ ? "pass/judged by family" : "pass/judged"; }

 private:
  static constexpr size_t kSchemesShown = 12;
  bool by_family_ = false;
};

// scheme x op: passes/judged of numerics and determinism, and of the kinds that judge files.
void matrix(const RunReport& report, std::ostream& out) {
  // A short form of quantize_activation, to fit the column.
  const std::vector<std::pair<std::string, std::string>> ops = {{"quantize", "quantize"},
                                                                {"quantize_activation", "activation"},
                                                                {"dequantize", "dequantize"},
                                                                {"pack", "pack"},
                                                                {"unpack", "unpack"},
                                                                {"linear", "linear"},
                                                                {"file", "file"}};
  const Rows names(report);
  std::map<std::string, std::map<std::string, Cell>> rows;
  for (const Verdict& verdict : report.verdicts) {
    const CaseId& parts = verdict.case_id;
    if (parts.kind == Kind::latency) continue;
    Cell& cell = rows[names.of(parts.scheme)][std::string(op_name(parts.op))];
    ++cell.total;
    cell.passes += verdict.status == Status::pass;
    cell.blocking += blocks_conformance(verdict, report.gate_latency);
  }
  out << "\n  " << std::left << std::setw(22) << names.title();
  for (const auto& [op, title] : ops) out << std::setw(14) << title;
  out << "\n";
  for (auto& [scheme, cells] : rows) {
    out << "  " << std::setw(22) << scheme;
    for (const auto& [op, title] : ops) {
      const Cell& cell = cells[op];
      const std::string text =
          cell.total == 0 ? "-" : std::to_string(cell.passes) + "/" + std::to_string(cell.total);
      out << std::setw(14) << text + (cell.blocking != 0 ? " FAIL" : "");
    }
    out << "\n";
  }
}

// One line per scheme: how many files have the expected size, and the one with the largest reduction.
void sizes(const RunReport& report, std::ostream& out) {
  const Rows names(report);
  struct Row {
    size_t files = 0, matching = 0;
    const Verdict* best = nullptr;
  };
  std::map<std::string, Row> rows;
  for (const Verdict& verdict : report.verdicts) {
    const CaseId& parts = verdict.case_id;
    if (parts.kind != Kind::size) continue;
    Row& row = rows[names.of(parts.scheme)];
    ++row.files;
    row.matching += verdict.status == Status::pass;
    const Measure *mine = find_measure(verdict, "reduction"),
                  *best = row.best ? find_measure(*row.best, "reduction") : nullptr;
    if (mine != nullptr && (best == nullptr || mine->value > best->value)) row.best = &verdict;
  }
  if (!rows.empty()) out << "\n  size against formula\n";
  for (const auto& [scheme, row] : rows) {
    out << "  " << std::left << std::setw(22) << scheme << row.matching << "/" << row.files << " files";
    const Measure *payload = row.best ? find_measure(*row.best, "payload_bytes") : nullptr,
                  *dense = row.best ? find_measure(*row.best, "dense_bytes") : nullptr;
    if (payload != nullptr && dense != nullptr)
      out << "; " << row.best->case_id.input << ": " << grouped(dense->value) << " -> "
          << grouped(payload->value) << " bytes, " << fixed(find_measure(*row.best, "reduction")->value, 2)
          << "x";
    out << "\n";
  }
}

void latency(const RunReport& report, std::ostream& out) {
  std::map<std::string, size_t> counts;
  const Verdict *best = nullptr, *worst = nullptr;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.case_id.kind != Kind::latency) continue;
    ++counts[std::string(status_name(verdict.status))];
    const Measure* ratio = find_measure(verdict, "ratio_to_dense");
    if (ratio == nullptr) continue;
    if (best == nullptr || ratio->value > find_measure(*best, "ratio_to_dense")->value) best = &verdict;
    if (worst == nullptr || ratio->value < find_measure(*worst, "ratio_to_dense")->value) worst = &verdict;
  }
  if (counts.empty()) return;
  out << "\n  latency" << (report.gate_latency ? " (gates)" : " (reported, does not gate)") << ":";
  for (const auto& [status, count] : counts) out << "  " << count << " " << status;
  out << "\n";
  const LatencyTrust& trust = report.latency_trust;
  if (trust.measured != 0)
    out << "    against themselves " << trust.alarms << " of " << trust.measured
        << " differed (chance allows " << trust.allowed << ")"
        << (trust.suspended ? ": latency is ignored in this run" : "") << "\n";
  if (best != nullptr)
    out << "    fastest against dense " << fixed(find_measure(*best, "ratio_to_dense")->value, 2) << "x "
        << best->full_id() << "\n    slowest against dense "
        << fixed(find_measure(*worst, "ratio_to_dense")->value, 2) << "x " << worst->full_id() << "\n";
}

void unsupported(const RunReport& report, std::ostream& out) {
  std::map<std::string, size_t> reasons;
  for (const Verdict& verdict : report.verdicts)
    if (verdict.status == Status::not_supported) ++reasons[verdict.reason];
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(count, printable(reason));
  std::sort(order.rbegin(), order.rend());
  if (!order.empty()) out << "\n  not supported\n";
  for (size_t i = 0; i < order.size() && i < kReasonsShown; ++i)
    out << "  " << std::right << std::setw(6) << order[i].first << "  "
        << clipped(order[i].second, kWidth - 10) << "\n";
  if (order.size() > kReasonsShown)
    out << "          and " << order.size() - kReasonsShown << " more reasons in the report\n";
}

// Sorts wrong answers before weak and undecided results and the suite's own faults.
int urgency(Status status) {
  switch (status) {
    case Status::fail:
      return 0;
    case Status::crash:
    case Status::timeout:
    case Status::resource:
      return 1;
    case Status::xpass:
      return 2;
    case Status::internal:
      return 3;
    default:
      return 4;
  }
}

// The reason in one or two lines: the first wrong element, then the diagnosis, or else the rest of the
// reason.
void explanation(const Verdict& verdict, std::ostream& out) {
  std::string reason = verdict.reason;
  if (verdict.mismatch) {
    const Mismatch& m = *verdict.mismatch;
    const std::string element = m.where + ": want " + m.want + ", got " + m.got;
    out << "    " << printable(element) << " (" << m.count << " of " << m.total << " differ)\n";
    for (const std::string& told :
         {element, std::to_string(m.count) + " of " + std::to_string(m.total) + " elements"})
      if (reason.starts_with(told)) reason.erase(0, std::min(reason.size(), told.size() + 2));
  }
  if (const size_t at = reason.find("hypothesis: "); at != reason.npos) reason.erase(0, at);
  if (!reason.empty()) out << "    " << clipped(printable(reason), 2 * kWidth) << "\n";
}

void failures(const RunReport& report, std::ostream& out) {
  std::vector<const Verdict*> blocking;
  for (const Verdict& verdict : report.verdicts)
    if (blocks_conformance(verdict, report.gate_latency)) blocking.push_back(&verdict);
  std::stable_sort(blocking.begin(), blocking.end(), [](const Verdict* a, const Verdict* b) {
    return urgency(a->status) < urgency(b->status);
  });
  for (size_t i = 0; i < blocking.size() && i < kFailuresShown; ++i) {
    const Verdict& verdict = *blocking[i];
    out << "\n  " << status_name(verdict.status) << " " << verdict.full_id() << "\n";
    explanation(verdict, out);
    out << "    " << verdict.rerun << "\n";
  }
  if (blocking.size() > kFailuresShown)
    out << "\n  and " << blocking.size() - kFailuresShown << " more in the report\n";
}

void first_ids(const char* what, const std::vector<std::string>& ids, std::ostream& out) {
  if (ids.empty()) return;
  out << "  " << ids.size() << " " << what << ": " << ids.front() << (ids.size() > 1 ? ", ..." : "") << "\n";
}

}  // namespace

std::string summary_text(const RunReport& report, const std::string& out_folder) {
  const Conformance verdict = conformance(report);
  const Json counts = report_json(report)["counts"];
  std::ostringstream out;
  const bool narrowed = report.selection.size() > (report.plan == kCompletePlan ? 0 : 1);
  const std::string passed = "PASSED " + report.plan + " plan" + (narrowed ? ", narrowed" : "");
  const std::string head = verdict.conformant                           ? "CONFORMANT"
                           : verdict.outcome == Outcome::conformant     ? passed
                           : verdict.outcome == Outcome::nothing_proved ? "NOTHING PROVED"
                           : verdict.outcome == Outcome::inconclusive   ? "INCONCLUSIVE"
                           : verdict.outcome == Outcome::infrastructure ? "COULD NOT JUDGE"
                                                                        : "NOT CONFORMANT";
  out << "qcts " << report.suite_version << " (" << report.suite_commit << "), plan " << report.plan << ", "
      << report.environment.value("cpu_model", "") << ", " << fixed(report.wall_s, 1) << " s\n"
      << head
      << (verdict.outcome == Outcome::conformant && !verdict.conformant ? " (" + verdict.reason + ")\n"
                                                                        : ": " + verdict.reason + "\n");
  counts_line(counts, out);
  out << "  mustpass: " << verdict.present << " of " << report.mustpass.size() << " judged\n";
  if (verdict.complete) {
    first_ids("mustpass cases without a verdict", verdict.missing, out);
    first_ids("cases that mustpass does not list", verdict.extra, out);
  }
  for (const std::string& line : report.infrastructure) out << "  " << clipped(line, 2 * kWidth) << "\n";
  matrix(report, out);
  sizes(report, out);
  latency(report, out);
  unsupported(report, out);
  failures(report, out);
  out << "\n  " << out_folder << "/report.json  " << out_folder << "/junit.xml  " << out_folder
      << "/report.html\n";
  return out.str();
}

Progress::Progress(bool enabled, size_t total)
    : enabled_(enabled),
      terminal_(::isatty(STDERR_FILENO) != 0),
      total_(total),
      last_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::saw(const Verdict& verdict, bool is_failure) {
  ++done_;
  failures_ += is_failure;
  if (!enabled_) return;
  if (is_failure && failures_ <= kFailuresWhileRunning) {
    clear();
    std::cerr << status_name(verdict.status) << " " << verdict.full_id() << ": "
              << clipped(printable(verdict.reason), kWidth) << std::endl;
    if (failures_ == kFailuresWhileRunning)
      std::cerr << "further failures are counted here and listed in the report" << std::endl;
  }
  draw(false);
}

void Progress::wait(const std::vector<std::string>& in_flight) {
  current_ = in_flight.empty() ? "" : in_flight.front();
  if (enabled_) draw(false);
}

void Progress::draw(bool force) {
  const auto now = std::chrono::steady_clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (!force && now - last_ < pause) return;
  last_ = now;
  const std::string text = "[" + std::to_string(done_) + "/" + std::to_string(total_) + "] " +
                           (failures_ != 0 ? std::to_string(failures_) + " failed  " : "") +
                           clipped(current_, 90);
  if (terminal_)
    std::cerr << "\r\033[K" << text << std::flush;
  else
    std::cerr << text << std::endl;
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_ && terminal_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace qcts
