// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/export.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <sstream>

#include "reports/cells.h"
#include "reports/failure_title.h"
#include "suites/comparison/markdown.h"
#include "suites/comparison/recorded_run.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::vector<const Verdict*> sorted_verdicts(const RunRecord& record) {
  std::vector<std::pair<std::string, const Verdict*>> named;
  for (const Verdict& verdict : record.verdicts) named.emplace_back(verdict.full_id(), &verdict);
  std::sort(named.begin(), named.end());
  std::vector<const Verdict*> list;
  for (const auto& [name, verdict] : named) list.push_back(verdict);
  return list;
}

// Medians of consecutive parts of the samples, which are as long as each other.
std::vector<double> repetitions_of(const std::vector<double>& samples) {
  std::vector<double> finite;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(finite),
               [](double us) { return std::isfinite(us); });
  const size_t count = std::min(kRepetitions, finite.size());
  std::vector<double> medians;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * finite.size() / count, end = (i + 1) * finite.size() / count;
    medians.push_back(median(std::span(finite).subspan(begin, end - begin)));
  }
  return medians;
}

Json entry_of(const std::string& name, size_t family, size_t repetitions, uint32_t threads) {
  return {{"name", name},          {"family_index", family},  {"per_family_instance_index", 0},
          {"run_name", name},      {"run_type", "iteration"}, {"repetitions", repetitions},
          {"repetition_index", 0}, {"threads", threads}};
}

void add_times(const std::string& name, size_t family, const std::vector<double>& us, uint32_t threads,
               Json& list) {
  for (size_t i = 0; i < us.size(); ++i) {
    Json entry = entry_of(name, family, us.size(), threads);
    entry["repetition_index"] = i;
    entry.update({{"iterations", 1}, {"real_time", us[i]}, {"cpu_time", us[i]}, {"time_unit", "us"}});
    list.push_back(std::move(entry));
  }
  const double count = static_cast<double>(us.size());
  const double mean = std::accumulate(us.begin(), us.end(), 0.0) / count;
  double squares = 0;
  for (const double one : us) squares += (one - mean) * (one - mean);
  const double deviation = us.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
  struct Aggregate {
    const char *name, *unit;
    double value;
  };
  for (const Aggregate& aggregate :
       {Aggregate{"mean", "time", mean}, Aggregate{"median", "time", median(us)},
        Aggregate{"stddev", "time", deviation}, Aggregate{"cv", "percentage", deviation / mean}}) {
    Json entry = entry_of(name, family, us.size(), threads);
    entry["name"] = name + "_" + aggregate.name;
    entry["run_type"] = "aggregate";
    entry.erase("repetition_index");
    entry.update({{"aggregate_name", aggregate.name},
                  {"aggregate_unit", aggregate.unit},
                  {"iterations", us.size()},
                  {"real_time", aggregate.value},
                  {"cpu_time", aggregate.value},
                  {"time_unit", "us"}});
    list.push_back(std::move(entry));
  }
}

// Quotes a cell where RFC 4180 asks for it.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string number_cell(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? Json(value).dump() : "";
}

constexpr const char* kCsvMeasures[] = {"payload_bytes",  "formula_bytes",  "file_bytes",
                                        "worst_of_bound", "median_us",      "share_of_roof",
                                        "ratio_to_dense", "ratio_to_torch", "ratio_to_itself",
                                        "fastest_us",     "fastest_of_roof"};
constexpr const char* kCsvIntervals[] = {"median_us",      "share_of_roof",   "ratio_to_dense",
                                         "ratio_to_torch", "ratio_to_itself", "fastest_us",
                                         "fastest_of_roof"};

bool has_interval(const std::string& measure) {
  return std::find(std::begin(kCsvIntervals), std::end(kCsvIntervals), measure) != std::end(kCsvIntervals);
}

std::string csv_line(const Verdict& verdict) {
  std::string evidence;
  for (const std::string& word : verdict.evidence) evidence += (evidence.empty() ? "" : " ") + word;
  const CaseId& id = verdict.case_id;
  std::string line;
  for (const std::string& text :
       {verdict.full_id(), std::string(kind_name(id.kind)), std::string(op_name(id.op)), id.scheme, id.input,
        verdict.provider, verdict.variant, std::string(status_name(verdict.status)), verdict.reason,
        evidence})
    line += cell(text) + ",";
  line += number_cell(verdict.wall_us);
  for (const char* name : kCsvMeasures) {
    const Measure* measure = find_measure(verdict, name);
    line += "," + (measure ? number_cell(measure->value) : "");
    if (!has_interval(name)) continue;
    line += "," + (measure && measure->low ? number_cell(*measure->low) : "");
    line += "," + (measure && measure->high ? number_cell(*measure->high) : "");
  }
  return line + "\n";
}

// Escapes what a workflow command of GitHub Actions gives a meaning; a property has two more such characters.
std::string escaped_for_github(const std::string& text, bool is_property) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','))) {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(c));
      escaped += code;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

struct CellCount {
  uint64_t pass = 0, bad = 0, declined = 0;
};

void add_matrix(const std::vector<const Verdict*>& verdicts, std::ostringstream& out) {
  std::map<std::string, std::map<Op, CellCount>> matrix;
  for (const Verdict* verdict : verdicts) {
    CellCount& count = matrix[verdict->case_id.scheme][verdict->case_id.op];
    count.pass += verdict->status == Status::pass;
    count.declined += verdict->status == Status::not_supported;
    count.bad += is_bad(verdict->status);
  }
  out << "\nPassed / judged, without those that the provider declined:\n\n| scheme |";
  for (int op = 0; op < kOpCount; ++op) out << " " << op_name(static_cast<Op>(op)) << " |";
  out << "\n|---|" << [] {
    std::string rule;
    for (int op = 0; op < kOpCount; ++op) rule += "---|";
    return rule;
  }() << "\n";
  for (auto& [scheme, row] : matrix) {
    out << "| " << code_span(scheme) << " |";
    for (int op = 0; op < kOpCount; ++op) {
      const auto found = row.find(static_cast<Op>(op));
      if (found == row.end() || found->second.pass + found->second.bad == 0)
        out << (found == row.end() ? " |" : " declined |");
      else
        out << " " << found->second.pass << " / " << found->second.pass + found->second.bad
            << (found->second.bad > 0 ? " **FAIL** |" : " |");
    }
    out << "\n";
  }
}

void add_latency(const std::vector<const Verdict*>& verdicts, std::ostringstream& out) {
  bool begun = false;
  for (const Verdict* verdict : verdicts) {
    const Measure *us = find_measure(*verdict, "median_us"), *roof = find_measure(*verdict, "share_of_roof"),
                  *dense = find_measure(*verdict, "ratio_to_dense");
    if (verdict->case_id.kind != Kind::latency || us == nullptr) continue;
    if (!begun) out << "\n| latency | us | of roof | x dense |\n|---|--:|--:|--:|\n";
    begun = true;
    const auto figure = [](const Measure* measure, double scale, const char* unit) {
      char text[40];
      std::snprintf(text, sizeof text, "%.4g%s", measure ? measure->value * scale : 0, unit);
      return measure && std::isfinite(measure->value) ? std::string(text) : std::string("-");
    };
    out << "| " << code_span(verdict->full_id()) << " | " << figure(us, 1, "") << " | "
        << figure(roof, 100, " %") << " | " << figure(dense, 1, "") << " |\n";
  }
}

}  // namespace

Json gbench_json(const RunRecord& record) {
  const RunHead& head = record.head;
  Json json = {
      {"context",
       {{"date", head.started_utc},
        {"executable", "qcts " + head.suite_version},
        {"num_cpus", head.environment.value("logical_cpus", 0)},
        {"mhz_per_cpu", 0},
        {"cpu_scaling_enabled", false},
        {"caches", Json::array()},
        {"load_avg", Json::array()},
        {"library_build_type", head.environment.value("build", "") == "release" ? "release" : "debug"},
        {"qcts_commit", head.suite_commit},
        {"qcts_machine_class", machine_class_of(head)}}},
      {"benchmarks", Json::array()}};
  size_t family = 0;
  for (const Verdict* verdict : sorted_verdicts(record)) {
    if (verdict->case_id.kind != Kind::latency || verdict->status == Status::not_supported) continue;
    const std::vector<double> us = repetitions_of(verdict->samples_us);
    if (!us.empty()) {
      add_times(verdict->full_id(), family, us, head.threads, json["benchmarks"]);
    } else {
      Json entry = entry_of(verdict->full_id(), family, 1, head.threads);
      entry.update({{"error_occurred", true},
                    {"error_message", verdict->reason},
                    {"iterations", 0},
                    {"real_time", 0.0},
                    {"cpu_time", 0.0},
                    {"time_unit", "us"}});
      json["benchmarks"].push_back(std::move(entry));
    }
    ++family;
  }
  return json;
}

Json bmf_json(const RunRecord& record) {
  constexpr double kNsOfUs = 1000;
  Json json = Json::object();
  for (const Verdict* verdict : sorted_verdicts(record)) {
    const Measure* us = find_measure(*verdict, "median_us");
    if (verdict->case_id.kind != Kind::latency || us == nullptr || !std::isfinite(us->value)) continue;
    Json& metric = json[verdict->full_id()]["latency"];
    metric["value"] = us->value * kNsOfUs;
    if (us->low) metric["lower_value"] = *us->low * kNsOfUs;
    if (us->high) metric["upper_value"] = *us->high * kNsOfUs;
  }
  return json;
}

std::string github_annotations(const RunRecord& record) {
  std::string text;
  for (const Group& group : groups_of(record.verdicts, record.head.gate_latency)) {
    if (!group.blocks) continue;
    const Verdict& smallest = *group.verdicts.front();
    text +=
        "::error title=" +
        escaped_for_github(
            group.provider + ": " + failure_title(group) + " (" + std::to_string(group.verdicts.size()) + ")",
            true) +
        "::" +
        escaped_for_github(smallest.full_id() + ": " + smallest.reason + "\n" + smallest.rerun, false) + "\n";
  }
  return text;
}

std::string csv_text(const RunRecord& record) {
  std::string text = "id,kind,op,scheme,input,provider,variant,status,reason,evidence,wall_us";
  for (const char* name : kCsvMeasures) {
    text += "," + std::string(name);
    if (has_interval(name)) text += "," + std::string(name) + "_low," + std::string(name) + "_high";
  }
  text += "\n";
  for (const Verdict* verdict : sorted_verdicts(record)) text += csv_line(*verdict);
  return text;
}

std::string run_markdown(const RunRecord& record) {
  const std::vector<const Verdict*> verdicts = sorted_verdicts(record);
  std::ostringstream out;
  out << "## qcts " << markdown_text(record.head.suite_version) << ", plan "
      << markdown_text(record.head.plan) << "\n\n"
      << record.head.started_utc << ", commit " << code_span(record.head.suite_commit) << ", "
      << machine_class_of(record.head) << "\n\n| status | cases |\n|---|--:|\n";
  std::map<Status, uint64_t> counts;
  for (const Verdict* verdict : verdicts) ++counts[verdict->status];
  for (const auto& [status, count] : counts) out << "| " << status_name(status) << " | " << count << " |\n";
  add_matrix(verdicts, out);
  bool begun = false;
  for (const Verdict* verdict : verdicts) {
    if (!is_bad(verdict->status) && verdict->status != Status::inconclusive) continue;
    if (!begun) out << "\n| not passed | status | reason |\n|---|---|---|\n";
    begun = true;
    out << "| " << code_span(verdict->full_id()) << " | " << status_name(verdict->status) << " | "
        << code_span(verdict->reason) << " |\n";
  }
  add_latency(verdicts, out);
  return out.str();
}

}  // namespace qcts
