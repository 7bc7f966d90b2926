// SPDX-License-Identifier: BSD-3-Clause
#include "reports/verdict.h"

#include <array>
#include <cmath>
#include <stdexcept>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, kStatusCount> kStatusNames = {
    "pass",  "fail",    "weak_evidence", "not_supported", "waived",   "xpass",
    "crash", "timeout", "resource",      "inconclusive",  "internal", "robustness"};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Non-finite numbers were written as null.
double real(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

template <typename T>
T field(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key))
    throw std::runtime_error(std::string("verdict: field '") + key + "' is missing");
  try {
    return json.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(std::string("verdict: field '") + key +
                             "' has the wrong type: " + json.at(key).dump());
  }
}

Json measure_json(const Measure& measure) {
  Json json = {{"name", measure.name}, {"unit", measure.unit}, {"value", number(measure.value)}};
  if (measure.low) json["low"] = number(*measure.low);
  if (measure.high) json["high"] = number(*measure.high);
  if (measure.samples) json["samples"] = *measure.samples;
  return json;
}

Measure measure_from(const Json& json) {
  Measure measure;
  measure.name = field<std::string>(json, "name");
  measure.unit = field<std::string>(json, "unit");
  measure.value = real(field<Json>(json, "value"));
  if (json.contains("low")) measure.low = real(json["low"]);
  if (json.contains("high")) measure.high = real(json["high"]);
  if (json.contains("samples")) measure.samples = field<uint64_t>(json, "samples");
  return measure;
}

LoadedType loaded_from(const Json& json) {
  return {field<std::string>(json, "before"), field<std::string>(json, "after"),
          field<uint64_t>(json, "tensors")};
}

VerdictFinding finding_from(const Json& json) {
  const std::string name = field<std::string>(json, "caveat");
  const std::optional<Caveat> caveat = caveat_from_name(name);
  if (!caveat) throw std::runtime_error("verdict: field 'caveat' is not a known caveat: '" + name + "'");
  return {*caveat, field<std::string>(json, "text")};
}

Mismatch mismatch_from(const Json& json) {
  Mismatch mismatch;
  mismatch.where = field<std::string>(json, "where");
  mismatch.want = field<std::string>(json, "want");
  mismatch.got = field<std::string>(json, "got");
  mismatch.count = field<uint64_t>(json, "count");
  mismatch.total = field<uint64_t>(json, "total");
  if (json.contains("map")) mismatch.map = wrong_map_from_json(json["map"]);
  return mismatch;
}

std::string output_hash_from(const Json& json) {
  std::string text = field<std::string>(json, "output_hash");
  if (!is_output_hash(text))
    throw std::runtime_error("verdict: field 'output_hash' is not " + std::to_string(kOutputHashDigits) +
                             " hexadecimal digits: '" + text + "'");
  return text;
}

}  // namespace

bool is_output_hash(std::string_view text) {
  return text.size() == kOutputHashDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string_view status_name(Status status) { return kStatusNames[static_cast<size_t>(status)]; }

std::optional<Status> status_from_name(std::string_view name) {
  for (size_t i = 0; i < kStatusNames.size(); ++i)
    if (kStatusNames[i] == name) return static_cast<Status>(i);
  return std::nullopt;
}

std::string Verdict::full_id() const {
  return variant.empty() ? case_id.text() : case_id.text() + "/" + provider + "_" + variant;
}

bool Verdict::has(Caveat caveat) const {
  return std::ranges::find(findings, caveat, &VerdictFinding::caveat) != findings.end();
}

Json to_json(const Verdict& verdict) {
  Json json = {{"case_id", verdict.case_id.text()},
               {"provider", verdict.provider},
               {"variant", verdict.variant},
               {"status", status_name(verdict.status)},
               {"reason", verdict.reason}};
  if (verdict.mismatch) {
    const Mismatch& m = *verdict.mismatch;
    json["mismatch"] = {
        {"where", m.where}, {"want", m.want}, {"got", m.got}, {"count", m.count}, {"total", m.total}};
    if (m.map) json["mismatch"]["map"] = to_json(*m.map);
  }
  json["measures"] = Json::array();
  for (const Measure& measure : verdict.measures) json["measures"].push_back(measure_json(measure));
  if (!verdict.speed.empty()) {
    json["speed"] = Json::array();
    for (const SpeedClaim& claim : verdict.speed) json["speed"].push_back(to_json(claim));
  }
  if (verdict.is_peer) json["peer"] = true;
  for (const LoadedType& type : verdict.loaded)
    json["loaded"].push_back({{"before", type.before}, {"after", type.after}, {"tensors", type.tensors}});
  json["evidence"] = verdict.evidence;
  if (!verdict.input_kind.empty()) json["input_kind"] = verdict.input_kind;
  if (verdict.asked) json["asked"] = to_json(*verdict.asked);
  if (!verdict.problem.empty()) json["problem"] = verdict.problem;
  if (!verdict.output_hash.empty()) json["output_hash"] = verdict.output_hash;
  for (const VerdictFinding& finding : verdict.findings)
    json["findings"].push_back({{"caveat", caveat_name(finding.caveat)}, {"text", finding.text}});
  json["rerun"] = verdict.rerun;
  json["wall_us"] = number(verdict.wall_us);
  if (!verdict.samples_us.empty()) {
    Json samples = Json::array();
    for (const double sample : verdict.samples_us) samples.push_back(number(sample));
    json["samples_us"] = std::move(samples);
  }
  if (!verdict.coverage.is_null()) json["coverage"] = verdict.coverage;
  return json;
}

Verdict verdict_from_json(const Json& json) {
  Verdict verdict;
  const std::string id = field<std::string>(json, "case_id");
  const std::optional<CaseId> case_id = parse_case_id(id);
  if (!case_id) throw std::runtime_error("case_id: '" + id + "' is not a case id");
  verdict.case_id = *case_id;
  verdict.provider = field<std::string>(json, "provider");
  verdict.variant = field<std::string>(json, "variant");
  const std::string status = field<std::string>(json, "status");
  const std::optional<Status> known = status_from_name(status);
  if (!known) throw std::runtime_error("verdict: field 'status' is not a known status: '" + status + "'");
  verdict.status = *known;
  verdict.reason = field<std::string>(json, "reason");
  if (json.contains("mismatch")) verdict.mismatch = mismatch_from(json["mismatch"]);
  for (const Json& measure : field<Json>(json, "measures")) verdict.measures.push_back(measure_from(measure));
  if (json.contains("speed"))
    for (const Json& claim : field<Json>(json, "speed"))
      verdict.speed.push_back(speed_claim_from_json(claim));
  if (json.contains("peer")) verdict.is_peer = field<bool>(json, "peer");
  if (json.contains("loaded"))
    for (const Json& type : json["loaded"]) verdict.loaded.push_back(loaded_from(type));
  verdict.evidence = field<std::vector<std::string>>(json, "evidence");
  if (json.contains("input_kind")) verdict.input_kind = field<std::string>(json, "input_kind");
  if (json.contains("asked")) verdict.asked = asked_from_json(json["asked"]);
  if (json.contains("problem")) verdict.problem = field<std::string>(json, "problem");
  if (json.contains("output_hash")) verdict.output_hash = output_hash_from(json);
  if (json.contains("findings"))
    for (const Json& finding : json["findings"]) verdict.findings.push_back(finding_from(finding));
  verdict.rerun = field<std::string>(json, "rerun");
  verdict.wall_us = real(field<Json>(json, "wall_us"));
  if (json.contains("samples_us"))
    for (const Json& sample : json["samples_us"]) verdict.samples_us.push_back(real(sample));
  if (json.contains("coverage")) verdict.coverage = json["coverage"];
  return verdict;
}

}  // namespace qcts
