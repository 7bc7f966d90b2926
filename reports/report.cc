// SPDX-License-Identifier: BSD-3-Clause
#include "reports/report.h"

#include <algorithm>
#include <set>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

bool has(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

Json status_counts(const std::vector<const Verdict*>& verdicts) {
  Json counts = Json::object();
  for (int i = 0; i < kStatusCount; ++i) counts[std::string(status_name(static_cast<Status>(i)))] = 0;
  for (const Verdict* verdict : verdicts) {
    Json& count = counts[std::string(status_name(verdict->status))];
    count = count.get<int64_t>() + 1;
  }
  return counts;
}

// Counts a pass once, by its weakest evidence: an emulated operation never confirms.
std::string_view evidence_class(const Verdict& verdict) {
  if (has(verdict.evidence, "emulated")) return "emulated";
  if (has(verdict.evidence, "golden")) return "confirmed";
  if (has(verdict.evidence, "reference")) return "reference";
  return "other";
}

Json counts_json(const RunReport& report) {
  std::vector<const Verdict*> all;
  std::map<std::string_view, std::vector<const Verdict*>> by_kind;
  std::map<std::pair<std::string, std::string_view>, std::vector<const Verdict*>> by_scheme_op;
  Json evidence = {{"confirmed", 0}, {"emulated", 0}, {"reference", 0}, {"other", 0}};
  for (const Verdict& verdict : report.verdicts) {
    const CaseId& parts = verdict.case_id;
    all.push_back(&verdict);
    by_kind[kind_name(parts.kind)].push_back(&verdict);
    by_scheme_op[{parts.scheme, op_name(parts.op)}].push_back(&verdict);
    if (verdict.status != Status::pass) continue;
    Json& count = evidence[std::string(evidence_class(verdict))];
    count = count.get<int64_t>() + 1;
  }
  Json kinds = Json::object(), operations = Json::array();
  for (const auto& [kind, verdicts] : by_kind) kinds[std::string(kind)] = status_counts(verdicts);
  for (const auto& [key, verdicts] : by_scheme_op)
    operations.push_back({{"scheme", key.first}, {"op", key.second}, {"statuses", status_counts(verdicts)}});
  return {{"total", all.size()},
          {"by_status", status_counts(all)},
          {"by_kind", kinds},
          {"by_scheme_op", operations},
          {"passes_by_evidence", evidence}};
}

Json case_json(const Verdict& verdict) {
  const CaseId& parts = verdict.case_id;
  Json json = to_json(verdict);
  json.erase("samples_us");
  json.erase("coverage");
  json["id"] = verdict.full_id();
  json["kind"] = kind_name(parts.kind);
  json["op"] = op_name(parts.op);
  json["scheme"] = parts.scheme;
  json["input"] = parts.input;
  return json;
}

Json measures_by_name(const Verdict& verdict) {
  Json measures = Json::object();
  const Json list = to_json(verdict)["measures"];
  for (Json measure : list) {
    const std::string name = measure["name"];
    measure.erase("name");
    measures[name] = std::move(measure);
  }
  return measures;
}

Json size_row(const Verdict& verdict) {
  const CaseId& parts = verdict.case_id;
  return {{"case_id", verdict.case_id.text()},
          {"scheme", parts.scheme},
          {"input", parts.input},
          {"status", status_name(verdict.status)},
          {"measures", measures_by_name(verdict)}};
}

Json latency_row(const Verdict& verdict) {
  Json row = size_row(verdict);
  row["op"] = op_name(verdict.case_id.op);
  row["provider"] = verdict.provider;
  row["variant"] = verdict.variant;
  row["reason"] = verdict.reason;
  const Json json = to_json(verdict);
  row["samples_us"] = json.contains("samples_us") ? json["samples_us"] : Json::array();
  return row;
}

Json not_supported_json(const RunReport& report) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const Verdict& verdict : report.verdicts)
    if (verdict.status == Status::not_supported) groups[verdict.reason].push_back(verdict.full_id());
  Json rows = Json::array();
  for (const auto& [reason, ids] : groups)
    rows.push_back({{"reason", reason}, {"count", ids.size()}, {"cases", ids}});
  return rows;
}

std::string waiver_state(const Waiver& waiver) {
  if (waiver.expired) return "expired";
  return waiver.matched.empty() ? "unused" : "active";
}

Json waivers_json(const RunReport& report) {
  Json rows = Json::array();
  for (const Waiver& waiver : report.waivers)
    rows.push_back({{"case", waiver.case_glob},
                    {"provider", waiver.provider},
                    {"issue", waiver.issue},
                    {"added", waiver.added},
                    {"expires", waiver.expires},
                    {"age_days", waiver.age_days},
                    {"days_left", waiver.days_left},
                    {"state", waiver_state(waiver)},
                    {"matched", waiver.matched}});
  return rows;
}

Json conformance_json(const RunReport& report) {
  const Conformance verdict = conformance(report);
  return {{"conformant", verdict.conformant},
          {"complete", verdict.complete},
          {"exit_code", static_cast<int>(verdict.outcome)},
          {"reason", verdict.reason},
          {"rule", conformance_rule(report.gate_latency)},
          {"mustpass_file", report.mustpass_file},
          {"mustpass_sha256", report.mustpass_sha256},
          {"mustpass_total", report.mustpass.size()},
          {"mustpass_present", verdict.present},
          {"mustpass_missing_total", verdict.missing.size()},
          // A narrowed run omits nearly all of them; `cases` lists what it judged.
          {"mustpass_missing", verdict.complete ? Json(verdict.missing) : Json::array()},
          {"mustpass_extra", verdict.extra}};
}

Json floor_json(const RunReport& report) {
  Json rows = Json::array();
  for (const FloorEntry& entry : report.floor)
    rows.push_back({{"scheme", entry.scheme},
                    {"op", op_name(entry.op)},
                    {"floor", entry.floor},
                    {"passes", entry.passes},
                    {"held", entry.passes >= entry.floor}});
  return rows;
}

}  // namespace

Json report_json(const RunReport& report) {
  Json sizes = Json::array(), latencies = Json::array(), cases = Json::array();
  for (const Verdict& verdict : report.verdicts) {
    const Kind kind = verdict.case_id.kind;
    if (kind == Kind::size) sizes.push_back(size_row(verdict));
    if (kind == Kind::latency) latencies.push_back(latency_row(verdict));
    cases.push_back(case_json(verdict));
  }
  Json json;
  json["schema"] = kReportSchema;
  json["suite"] = {{"version", report.suite_version}, {"commit", report.suite_commit}};
  json["run"] = {{"plan", report.plan},
                 {"started", report.started_utc},
                 {"wall_s", report.wall_s},
                 {"seed", report.seed},
                 {"shard", report.shard},
                 {"arguments", report.arguments},
                 {"selection", report.selection},
                 {"fixtures", report.fixtures},
                 {"gate_latency", report.gate_latency},
                 {"infrastructure", report.infrastructure}};
  json["environment"] = report.environment;
  json["providers"] = report.providers;
  json["schemes"] = report.schemes;
  json["goldens"] = report.goldens;
  json["ledger"] = report.ledger;
  json["readers"] = report.readers;
  json["coverage"] = report.coverage;
  json["conformance"] = conformance_json(report);
  json["counts"] = counts_json(report);
  json["floor"] = floor_json(report);
  json["size"] = std::move(sizes);
  json["latency"] = std::move(latencies);
  json["latency_note"] = report.latency_note;
  const LatencyTrust& trust = report.latency_trust;
  json["latency_trust"] = {{"measured", trust.measured},
                           {"alarms", trust.alarms},
                           {"allowed", trust.allowed},
                           {"suspended", trust.suspended}};
  json["not_supported"] = not_supported_json(report);
  json["waivers"] = waivers_json(report);
  json["cases"] = std::move(cases);
  return json;
}

}  // namespace qcts
