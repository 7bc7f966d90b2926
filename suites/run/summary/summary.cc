// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/summary/summary.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "reference/schemes/scheme.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
constexpr size_t kReasonsShown = 4;

// The rows of the tables: schemes if they fit on the screen, otherwise families.
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
  const char* title() const { return by_family_ ? "family" : "scheme"; }

 private:
  static constexpr size_t kSchemesShown = 12;
  bool by_family_ = false;
};

struct Counts {
  uint64_t pass = 0, fail = 0, not_supported = 0, other = 0;
  uint64_t latency = 0;
};

// Which column a status counts in.
uint64_t& column_of(Counts& counts, Status status) {
  switch (status) {
    case Status::pass:
      return counts.pass;
    case Status::not_supported:
      return counts.not_supported;
    case Status::weak_evidence:
    case Status::waived:
    case Status::inconclusive:
    case Status::robustness:
      return counts.other;
    default:
      return counts.fail;
  }
}

void print_counts(const RunReport& report, const std::vector<Cell>& cells, Printout& out) {
  const Rows names(report);
  std::map<std::string, Counts> rows;
  uint64_t others = 0;
  for (const Cell& cell : cells) {
    if (cell.kind == Kind::latency) continue;
    Counts& row = rows[names.of(cell.scheme)];
    for (int i = 0; i < kStatusCount; ++i)
      column_of(row, static_cast<Status>(i)) += cell.statuses[static_cast<size_t>(i)];
    others += row.other;
  }
  if (rows.empty()) return;
  std::vector<Column> columns = {{names.title()}, {"pass", Align::right}, {"fail", Align::right}};
  if (others != 0) columns.push_back({"other", Align::right});
  columns.push_back({"not supported", Align::right});
  std::vector<TableRow> lines;
  const auto number = [](uint64_t count) {
    return count == 0 ? std::string("-") : with_commas(static_cast<double>(count));
  };
  for (const auto& [name, row] : rows) {
    TableRow line = {name, number(row.pass), number(row.fail)};
    if (others != 0) line.push_back(number(row.other));
    line.push_back(number(row.not_supported));
    lines.push_back(std::move(line));
  }
  out.blank();
  out.table(columns, lines, 2);
}

// One line per scheme: how many files have the expected size, and the one with the largest reduction.
void print_sizes(const RunReport& report, Printout& out) {
  const Rows names(report);
  struct Row {
    size_t files = 0, matching = 0;
    const Verdict* best = nullptr;
  };
  std::map<std::string, Row> rows;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.case_id.kind != Kind::size) continue;
    Row& row = rows[names.of(verdict.case_id.scheme)];
    ++row.files;
    row.matching += verdict.status == Status::pass;
    const Measure *mine = find_measure(verdict, "reduction"),
                  *best = row.best ? find_measure(*row.best, "reduction") : nullptr;
    if (mine != nullptr && (best == nullptr || mine->value > best->value)) row.best = &verdict;
  }
  if (rows.empty()) return;
  std::vector<TableRow> lines;
  for (const auto& [scheme, row] : rows) {
    TableRow line = {scheme, std::to_string(row.matching) + "/" + std::to_string(row.files)};
    for (const char* name : {"dense_bytes", "payload_bytes"}) {
      const Measure* measure = row.best ? find_measure(*row.best, name) : nullptr;
      line.push_back(measure == nullptr ? "-" : with_commas(measure->value));
    }
    const Measure* reduction = row.best ? find_measure(*row.best, "reduction") : nullptr;
    line.push_back(reduction == nullptr ? "-" : fixed(reduction->value, 2) + "x");
    lines.push_back(std::move(line));
  }
  out.blank();
  out.table({{"size"},
             {"as the formula", Align::right},
             {"dense bytes", Align::right},
             {"payload bytes", Align::right},
             {"best", Align::right}},
            lines, 2);
}

void print_unsupported(const RunReport& report, Printout& out) {
  std::map<std::string, size_t> reasons;
  for (const Verdict& verdict : report.verdicts)
    if (verdict.status == Status::not_supported) ++reasons[verdict.reason];
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(count, reason);
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (order.empty()) return;
  out.blank();
  out.text("not supported", 2, Ink::bold);
  for (size_t i = 0; i < order.size() && i < kReasonsShown; ++i)
    out.text(std::to_string(order[i].first) + ": " + clipped_to(order[i].second, 2 * out.screen().columns),
             4);
  if (order.size() > kReasonsShown)
    out.text("and " + std::to_string(order.size() - kReasonsShown) + " more reasons in the report", 4);
}

void print_durations(const RunReport& report, size_t count, Printout& out) {
  std::vector<const Verdict*> slowest;
  for (const Verdict& verdict : report.verdicts) slowest.push_back(&verdict);
  std::ranges::stable_sort(slowest, std::greater(), &Verdict::wall_us);
  slowest.resize(std::min(slowest.size(), count));
  if (slowest.empty()) return;
  out.blank();
  out.text("slowest", 2, Ink::bold);
  for (const Verdict* verdict : slowest)
    out.text(fixed(verdict->wall_us * 1e-6, 2) + " s  " + verdict->full_id(), 4);
}

void print_first(const char* what, const std::vector<std::string>& ids, Printout& out) {
  if (ids.empty()) return;
  out.text(std::to_string(ids.size()) + " " + what + ": " + ids.front() + (ids.size() > 1 ? ", ..." : ""), 2);
}

// One line for each provider: its answers to hostile inputs.
void print_robustness(const RunReport& report, Printout& out) {
  struct Row {
    uint64_t right = 0, declined = 0, broke = 0;
    std::vector<std::string> differing;
  };
  std::map<std::string, Row> rows;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.input_kind != "hostile") continue;
    Row& row = rows[verdict.provider];
    switch (verdict.status) {
      case Status::pass:
        ++row.right;
        break;
      case Status::not_supported:
        ++row.declined;
        break;
      case Status::crash:
      case Status::timeout:
      case Status::resource:
        ++row.broke;
        break;
      default:
        row.differing.push_back(verdict.full_id());
    }
  }
  for (const auto& [provider, row] : rows)
    out.text("robustness of " + provider + ": " +
                 std::to_string(row.right + row.declined + row.broke + row.differing.size()) +
                 " hostile inputs, " + std::to_string(row.right) + " right, " + std::to_string(row.declined) +
                 " declined, " + std::to_string(row.differing.size()) + " differ, " +
                 std::to_string(row.broke) + " crashes" +
                 (row.differing.empty() ? "" : "; first " + row.differing.front()),
             2);
}

// How often judges had to ask hosts, for a verdict on a kernel.
void print_left_out(const RunReport& report, Printout& out) {
  uint64_t all = 0;
  std::string kinds;
  for (const auto& [cases, count] : report.left_out) {
    all += count;
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(kind_name(cases.first)) +
             "." + std::string(op_name(cases.second));
  }
  if (all != 0)
    out.text(
        "left out for lack of time: " + std::to_string(all) + (all == 1 ? " case: " : " cases: ") + kinds, 2,
        Ink::yellow);
}

void print_round_trips(const RunReport& report, Printout& out) {
  const auto verdicts = std::ranges::count_if(report.verdicts, [](const Verdict& verdict) {
    return verdict.provider != "qcts" && verdict.case_id.kind != Kind::latency;
  });
  if (report.host_round_trips == 0 || verdicts == 0) return;
  const double trips = static_cast<double>(report.host_round_trips);
  out.text("round trips to hosts: " + with_commas(trips) + ", " +
               fixed(trips / static_cast<double>(verdicts), 1) + " a verdict",
           2);
}

void print_evidence(const RunReport& report, const Conformance& verdict, const std::vector<Cell>& cells,
                    Printout& out) {
  uint64_t confirmed = 0, emulated = 0, reference = 0, other = 0;
  for (const Cell& cell : cells) {
    confirmed += cell.confirmed;
    emulated += cell.emulated;
    reference += cell.reference;
    other += cell.other;
  }
  out.blank();
  out.text("passes: " + std::to_string(confirmed) + " on real files, " + std::to_string(emulated) +
               " on files with an emulated operation (not confirmed), " + std::to_string(reference) +
               " on the reference, " + std::to_string(other) + " other",
           2);
  out.text("mustpass: " + std::to_string(verdict.present) + " of " + std::to_string(report.mustpass.size()) +
               " asked",
           2);
  for (const nlohmann::ordered_json& provider : report.providers)
    if (provider.contains("not_asked"))
      out.text("not asked: " + std::to_string(provider["not_asked"].get<uint64_t>()) +
                   " cases with inputs that no recipe writes; " + provider["name"].get<std::string>() +
                   " does not declare representable_inputs",
               2);
  for (const nlohmann::ordered_json& provider : report.providers)
    for (const nlohmann::ordered_json& line : provider.value("unknown", nlohmann::ordered_json::array()))
      out.text("not asked: " + provider["name"].get<std::string>() + ", " + line.get<std::string>(), 2,
               Ink::yellow);
  print_left_out(report, out);
  print_round_trips(report, out);
  print_robustness(report, out);
  if (verdict.complete) {
    print_first("mustpass cases without a verdict", verdict.missing, out);
    print_first("cases that mustpass does not list", verdict.extra, out);
  }
  for (const std::string& line : report.infrastructure) out.text(line, 2, Ink::yellow);
}

std::string verdict_line(const RunReport& report, const Conformance& verdict) {
  if (!report.stopped.empty()) return "STOPPED " + report.stopped;
  if (verdict.conformant) return "CONFORMANT: " + verdict.reason;
  if (verdict.is_partial) return "PARTIAL: " + verdict.reason;
  switch (verdict.outcome) {
    case Outcome::conformant:
      return "PASSED " + report.plan + " plan" + (is_narrowed(report) ? ", narrowed" : "") + " (" +
             verdict.reason + ")";
    case Outcome::nothing_proved:
      return "NOTHING PROVED: " + verdict.reason;
    case Outcome::inconclusive:
      return "INCONCLUSIVE: " + verdict.reason;
    case Outcome::infrastructure:
      return "COULD NOT JUDGE: " + verdict.reason;
    default:
      return "NOT CONFORMANT: " + verdict.reason;
  }
}

// "416 pass, 59 fail, 210 not supported", with every other status that occurs.
std::string status_counts(const RunReport& report) {
  std::map<Status, uint64_t> counts = {{Status::pass, 0}, {Status::fail, 0}, {Status::not_supported, 0}};
  for (const Verdict& verdict : report.verdicts) ++counts[verdict.status];
  std::string text;
  const auto add = [&](Status status, const std::string& name) {
    text += (text.empty() ? "" : ", ") + std::to_string(counts[status]) + " " + name;
  };
  for (const auto& [status, count] : counts)
    if (status != Status::not_supported) add(status, std::string(status_name(status)));
  add(Status::not_supported, "not supported");
  return text;
}

// The first file's path, followed by the names of the others if they fit.
std::string files_line(const std::vector<std::string>& files, const Screen& screen) {
  std::string line = files.front();
  for (size_t i = 1; i < files.size(); ++i) line += ", " + fs::path(files[i]).filename().string();
  return columns_of(line) <= screen.columns ? line : files.front();
}

void print_verdict(const RunReport& report, const Conformance& verdict, const std::vector<std::string>& files,
                   Printout& out) {
  const bool good = verdict.outcome == Outcome::conformant;
  const bool bad = !report.stopped.empty() || verdict.outcome == Outcome::failed ||
                   verdict.outcome == Outcome::infrastructure;
  out.blank();
  out.text(verdict_line(report, verdict), 0, good ? Ink::green : bad ? Ink::red : Ink::yellow);
  out.text(status_counts(report));
  if (!verdict.not_isolated.empty())
    out.text("NOT ISOLATED, so conformance is not stated: " + verdict.not_isolated, 0, Ink::red);
  if (!files.empty()) out.path(files_line(files, out.screen()));
}

}  // namespace

std::string summary_text(const RunReport& report, const std::vector<std::string>& files, const Screen& screen,
                         size_t durations) {
  const Conformance verdict = conformance(report);
  const std::vector<Cell> cells = cells_of(report.verdicts);
  Printout out(screen);
  out.text("qcts " + report.suite_version + " (" + report.suite_commit + "), plan " + report.plan + ", " +
           machine_text(report.environment) + ", " + fixed(report.wall_s, 1) + " s");
  print_counts(report, cells, out);
  print_evidence(report, verdict, cells, out);
  print_sizes(report, out);
  print_latency(report, out);
  print_unsupported(report, out);
  print_durations(report, durations, out);
  print_failures(report, out);
  print_verdict(report, verdict, files, out);
  return out.str();
}

}  // namespace qcts
