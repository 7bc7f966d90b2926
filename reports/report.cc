// SPDX-License-Identifier: BSD-3-Clause
#include "reports/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "reports/cells.h"
#include "reports/failure_title.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

// Lists are cut here, so that a run in which everything fails still gives a small report; the record has the
// rest.
constexpr size_t kMaxGroups = 500, kMaxFailures = 1000, kFailuresOfAGroup = 10, kMaxIds = 1000;

// Which of a verdict's columns `statuses` counts: all of them, or only those that occurred.
enum class Zeros { shown, left_out };

Json statuses_json(const std::array<uint64_t, kStatusCount>& statuses, Zeros zeros) {
  Json counts = Json::object();
  for (size_t i = 0; i < statuses.size(); ++i)
    if (statuses[i] != 0 || zeros == Zeros::shown)
      counts[std::string(status_name(static_cast<Status>(i)))] = statuses[i];
  return counts;
}

void add(std::array<uint64_t, kStatusCount>& sum, const std::array<uint64_t, kStatusCount>& more) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

Json counts_json(const std::vector<Cell>& cells) {
  std::array<uint64_t, kStatusCount> all{};
  std::map<std::string_view, std::array<uint64_t, kStatusCount>> by_kind;
  uint64_t total = 0, confirmed = 0, emulated = 0, reference = 0, other = 0;
  for (const Cell& cell : cells) {
    total += cell.verdicts.size();
    add(all, cell.statuses);
    add(by_kind[kind_name(cell.kind)], cell.statuses);
    confirmed += cell.confirmed;
    emulated += cell.emulated;
    reference += cell.reference;
    other += cell.other;
  }
  Json kinds = Json::object();
  for (const auto& [kind, statuses] : by_kind)
    kinds[std::string(kind)] = statuses_json(statuses, Zeros::shown);
  return {{"total", total},
          {"by_status", statuses_json(all, Zeros::shown)},
          {"by_kind", kinds},
          {"passes_by_evidence",
           {{"confirmed", confirmed}, {"emulated", emulated}, {"reference", reference}, {"other", other}}}};
}

Json evidence_json(const Cell& cell) {
  Json counts = Json::object();
  for (const auto& [name, count] : {std::pair{"confirmed", cell.confirmed},
                                    {"emulated", cell.emulated},
                                    {"reference", cell.reference},
                                    {"other", cell.other}})
    if (count != 0) counts[name] = count;
  return counts;
}

Json cells_json(const std::vector<Cell>& cells) {
  Json rows = Json::array();
  for (const Cell& cell : cells)
    rows.push_back({{"kind", kind_name(cell.kind)},
                    {"op", op_name(cell.op)},
                    {"scheme", cell.scheme},
                    {"provider", cell.provider},
                    {"variant", cell.variant},
                    {"total", cell.verdicts.size()},
                    {"statuses", statuses_json(cell.statuses, Zeros::left_out)},
                    {"passes", evidence_json(cell)},
                    {"wall_us", std::round(cell.wall_us)}});
  return rows;
}

// Counts the verdicts of a group by one of their properties.
template <typename Property>
Json counted(const Group& group, Property property) {
  std::map<std::string, uint64_t> counts;
  for (const Verdict* verdict : group.verdicts) ++counts[std::string(property(*verdict))];
  return counts;
}

Json group_json(const Group& group) {
  const Verdict& example = *group.verdicts.front();
  return {{"group", group.name()},
          {"status", status_name(group.status)},
          {"blocks", group.blocks},
          {"provider", group.provider},
          {"hypothesis", group.hypothesis},
          {"title", failure_title(group)},
          {"what", group.what},
          {"count", group.verdicts.size()},
          {"variants", counted(group, [](const Verdict& v) { return v.variant; })},
          {"ops", counted(group, [](const Verdict& v) { return op_name(v.case_id.op); })},
          {"schemes", counted(group, [](const Verdict& v) { return v.case_id.scheme; })},
          {"example", example.full_id()},
          {"reason", clipped_text(example.reason)},
          {"diagnosis", clipped_text(failure_details(group))},
          {"rerun", clipped_text(example.rerun)}};
}

Json groups_json(const std::vector<Group>& groups) {
  Json rows = Json::array();
  for (const Group& group : groups) {
    if (rows.size() == kMaxGroups) break;
    rows.push_back(group_json(group));
  }
  return rows;
}

Json failure_json(const Verdict& verdict, const Group& group) {
  const CaseId& parts = verdict.case_id;
  Json json = {{"id", verdict.full_id()}};
  json.update(to_json(verdict));
  for (const char* unneeded : {"samples_us", "coverage", "speed", "peer", "loaded"}) json.erase(unneeded);
  json["reason"] = clipped_text(verdict.reason);
  json["rerun"] = clipped_text(verdict.rerun);
  if (verdict.mismatch)
    for (const char* field : {"where", "want", "got"})
      json["mismatch"][field] = clipped_text(json["mismatch"][field].get<std::string>());
  json["kind"] = kind_name(parts.kind);
  json["op"] = op_name(parts.op);
  json["scheme"] = parts.scheme;
  json["input"] = parts.input;
  json["hypothesis"] = hypothesis_of(verdict.reason);
  json["group"] = group.name();
  return json;
}

// The simplest verdicts of each group, except those that only decline.
Json failures_json(const std::vector<Group>& groups) {
  Json rows = Json::array();
  for (const Group& group : groups) {
    if (group.status == Status::not_supported && !group.blocks) continue;
    for (size_t i = 0; i < group.verdicts.size() && i < kFailuresOfAGroup && rows.size() < kMaxFailures; ++i)
      rows.push_back(failure_json(*group.verdicts[i], group));
  }
  return rows;
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

Json assign_row(const Verdict& verdict) {
  Json row = size_row(verdict);
  row["loaded"] = to_json(verdict).value("loaded", Json::array());
  return row;
}

Json latency_row(const Verdict& verdict) {
  Json row = size_row(verdict);
  row["op"] = op_name(verdict.case_id.op);
  row["provider"] = verdict.provider;
  row["variant"] = verdict.variant;
  row["reason"] = clipped_text(verdict.reason);
  row["peer"] = verdict.is_peer;
  row["speed"] = Json::array();
  for (const SpeedClaim& claim : verdict.speed) row["speed"].push_back(to_json(claim));
  return row;
}

Json first_ids(const std::vector<std::string>& ids) {
  return std::vector<std::string>(ids.begin(),
                                  ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), kMaxIds)));
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
                    {"matched_total", waiver.matched.size()},
                    {"matched", first_ids(waiver.matched)}});
  return rows;
}

Json conformance_json(const RunReport& report) {
  const Conformance verdict = conformance(report);
  Json claims = Json::array();
  for (const ProviderClaim& claim : verdict.claims) claims.push_back(to_json(claim));
  return {{"conformant", verdict.conformant},
          {"complete", verdict.complete},
          {"partial", verdict.is_partial},
          {"exit_code", static_cast<int>(verdict.outcome)},
          {"reason", verdict.reason},
          {"rule", conformance_rule(report.gate_latency)},
          {"mustpass_file", report.mustpass_file},
          {"mustpass_sha256", report.mustpass_sha256},
          {"mustpass_total", report.mustpass.size()},
          {"mustpass_present", verdict.present},
          {"mustpass_missing_total", verdict.missing.size()},
          // A narrowed run omits nearly all of them.
          {"mustpass_missing", first_ids(verdict.complete ? verdict.missing : std::vector<std::string>())},
          {"mustpass_extra_total", verdict.extra.size()},
          {"mustpass_extra", first_ids(verdict.extra)},
          {"claims", claims}};
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

Json left_out_json(const LeftOut& left_out) {
  Json rows = Json::array();
  for (const auto& [cases, count] : left_out)
    rows.push_back({{"kind", kind_name(cases.first)}, {"op", op_name(cases.second)}, {"count", count}});
  return rows;
}

}  // namespace

Json report_json(const RunReport& report) {
  const std::vector<Cell> cells = cells_of(report.verdicts);
  const std::vector<Group> groups = groups_of(report.verdicts, report.gate_latency);
  Json assigned = Json::array(), sizes = Json::array(), latencies = Json::array();
  for (const Verdict& verdict : report.verdicts) {
    const Kind kind = verdict.case_id.kind;
    if (kind == Kind::assign) assigned.push_back(assign_row(verdict));
    if (kind == Kind::size) sizes.push_back(size_row(verdict));
    if (kind == Kind::latency) latencies.push_back(latency_row(verdict));
  }
  Json json;
  json["qcts"] = "report";
  json["schema"] = kReportSchema;
  json["suite"] = {{"version", report.suite_version}, {"commit", report.suite_commit}};
  json["run"] = {{"plan", report.plan},
                 {"started", report.started_utc},
                 {"wall_s", report.wall_s},
                 {"seed", report.seed},
                 {"seed_sha256", report.seed_sha256},
                 {"shard", report.shard},
                 {"arguments", report.arguments},
                 {"selection", report.selection},
                 {"fixtures", report.fixtures},
                 {"gate_latency", report.gate_latency},
                 {"left_out", left_out_json(report.left_out)},
                 {"infrastructure", report.infrastructure}};
  json["conformance"] = conformance_json(report);
  json["counts"] = counts_json(cells);
  json["changes"] = report.changes;
  json["groups_total"] = groups.size();
  json["groups"] = groups_json(groups);
  json["failures"] = failures_json(groups);
  json["cells"] = cells_json(cells);
  json["floor"] = floor_json(report);
  json["assign"] = std::move(assigned);
  json["size"] = std::move(sizes);
  json["latency"] = std::move(latencies);
  json["latency_note"] = report.latency_note;
  const LatencyTrust& trust = report.latency_trust;
  json["latency_trust"] = {{"measured", trust.measured},
                           {"alarms", trust.alarms},
                           {"allowed", trust.allowed},
                           {"suspended", trust.suspended}};
  json["waivers"] = waivers_json(report);
  json["environment"] = report.environment;
  json["providers"] = report.providers;
  json["schemes"] = report.schemes;
  json["goldens"] = report.goldens;
  json["ledger"] = report.ledger;
  json["readers"] = report.readers;
  json["coverage"] = report.coverage;
  return json;
}

std::string machine_text(const nlohmann::ordered_json& environment) {
  const std::string processor = environment.value("cpu_model", "");
  const auto device = environment.find("device");
  return device == environment.end() ? processor : device->value("name", "") + ", " + processor;
}

std::string report_text(const Json& report) {
  const auto dumped = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text;
  for (const auto& [key, value] : report.items()) {
    text += (text.empty() ? "{\n " : ",\n ") + dumped(key) + ": ";
    if (!value.is_array() || value.empty()) {
      text += dumped(value);
      continue;
    }
    const char* before = "[\n  ";
    for (const Json& row : value) {
      text += before + dumped(row);
      before = ",\n  ";
    }
    text += "\n ]";
  }
  return text + "\n}\n";
}

}  // namespace qcts
