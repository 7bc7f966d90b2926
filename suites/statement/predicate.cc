// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/predicate.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "reference/formats/io/sha256.h"
#include "suites/base/paths.h"
#include "suites/cases/conformance/profiles.h"
#include "suites/run/run_report.h"
#include "suites/statement/envelope.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::string field(const Json& json, const char* name) {
  if (!json.at(name).is_string()) throw std::runtime_error(std::string(name) + ": not a text");
  return json.at(name);
}

Json row_json(const StatedVerdict& row) {
  Json json = {{"case", row.verdict.case_id.text()},
               {"variant", row.verdict.variant},
               {"status", status_name(row.verdict.status)}};
  if (!row.verdict.input_kind.empty()) json["input_kind"] = row.verdict.input_kind;
  if (row.verdict.asked) json["asked"] = to_json(*row.verdict.asked);
  if (!row.verdict.output_hash.empty()) json["output_hash"] = row.verdict.output_hash;
  json["sha256"] = row.sha256;
  return json;
}

StatedVerdict row_from(const Json& json, const std::string& provider) {
  require_fields(json, "verdicts", {"case", "variant", "status", "sha256"},
                 {"input_kind", "asked", "output_hash"});
  StatedVerdict row;
  const std::string id = field(json, "case"), status = field(json, "status");
  const std::optional<CaseId> case_id = parse_case_id(id);
  if (!case_id) throw std::runtime_error("verdicts: '" + id + "' is not a case id");
  const std::optional<Status> known = status_from_name(status);
  if (!known) throw std::runtime_error("verdicts: '" + status + "' is not a status");
  row.verdict.case_id = *case_id;
  row.verdict.provider = provider;
  row.verdict.variant = field(json, "variant");
  row.verdict.status = *known;
  if (json.contains("input_kind")) row.verdict.input_kind = field(json, "input_kind");
  if (json.contains("asked")) {
    row.verdict.asked = asked_from_json(json["asked"]);
    if (to_json(*row.verdict.asked) != json["asked"])
      throw std::runtime_error("verdicts: 'asked' of " + id + " has unknown fields");
  }
  if (json.contains("output_hash")) {
    row.verdict.output_hash = field(json, "output_hash");
    if (!is_output_hash(row.verdict.output_hash))
      throw std::runtime_error("verdicts: 'output_hash' of " + id + " is not a hash");
  }
  row.sha256 = field(json, "sha256");
  return row;
}

const Json& only_provider(const RunHead& head) {
  if (head.providers.size() != 1) throw std::runtime_error("head: not a run of one provider");
  return head.providers.front();
}

Json subject_json(const std::string& path, const std::string& sha256) {
  return {{"name", std::filesystem::path(path).filename().string()}, {"digest", {{"sha256", sha256}}}};
}

// The library, and every other file of code that its host had mapped.
Json subjects_json(const RunHead& head) {
  const Json& provider = only_provider(head);
  Json subjects = Json::array({subject_json(provider.value("library", ""), provider.value("sha256", ""))});
  for (const Json& file : provider.value("code", Json::array()))
    if (const Json subject = subject_json(file.at("path"), file.at("sha256")); subject != subjects.front())
      subjects.push_back(subject);
  return subjects;
}

// Why the files of a library's code are not known, or "".
std::string unknown_code(const Json& provider) {
  const std::string library = provider.value("library", "");
  if (library.empty() || !is_shared_library(library)) return "";
  bool has_library = false;
  for (const Json& file : provider.value("code", Json::array())) {
    const std::string path = file.at("path"), sha256 = file.at("sha256");
    has_library = has_library || sha256 == provider.value("sha256", "");
    if (sha256.size() != 64) return "the provider ran code that cannot be hashed any more: " + path;
  }
  return has_library ? "" : "it does not say which files of code the provider's host had mapped";
}

// The user's arguments that make a run of one provider incomplete.
std::string narrowing_of(const RunHead& head) {
  if (head.shards > 1) return "it is one shard of " + std::to_string(head.shards);
  if (!head.fixtures.empty()) return "it judged additional fixtures: " + head.fixtures.front();
  for (const std::string& word : head.selection)
    if (!word.starts_with("--provider ") && !word.starts_with("--device ") &&
        !(word.starts_with("--kind ") && head.environment.contains("device")))
      return "it is a selection (" + word + "), and a statement needs a whole run of plan nightly";
  return "";
}

// Did the provider's profiles set different options than they do here?
std::string other_options(const Json& provider) {
  const PlayedProfiles played(profiles_named(provider.value("profile", ""), load_profiles(profiles_file())));
  const std::vector<std::string> there = provider.value("options", std::vector<std::string>());
  if (there == played.options()) return "";
  return "its profile set different options than here: " + Json(there).dump() + ", not " +
         Json(played.options()).dump();
}

std::string unsuited(const RunHead& head, const std::vector<Verdict>& verdicts) {
  if (std::string narrowed = narrowing_of(head); !narrowed.empty()) return narrowed;
  if (head.providers.size() != 1)
    return "it has " + std::to_string(head.providers.size()) + " providers, not one";
  if (std::ranges::find(head.arguments, "--seed-file") != head.arguments.end() && head.seed_sha256.empty())
    return "its seed is secret, but the hash of the seed is missing";
  if (!head.infrastructure.empty()) return "it could not judge: " + head.infrastructure.front();
  if (verdicts.size() != head.cases || head.cases != head.all_cases)
    return "it is unfinished: " + std::to_string(verdicts.size()) + " of " + std::to_string(head.all_cases) +
           " cases";
  const Json& provider = head.providers.front();
  if (std::string other = other_options(provider); !other.empty()) return other;
  if (std::string unknown = unknown_code(provider); !unknown.empty()) return unknown;
  const std::string isolation = provider.value("isolation", "");
  if (isolation != "isolated" && !isolation.starts_with("isolated, but "))
    return "the provider was not isolated: " + isolation;
  const std::string name = provider.value("name", "");
  std::vector<std::string> ids;
  for (const Verdict& verdict : verdicts) {
    if (verdict.provider != name) return "it has verdicts on " + verdict.provider + " too";
    ids.push_back(verdict.full_id());
  }
  std::ranges::sort(ids);
  if (const auto twin = std::ranges::adjacent_find(ids); twin != ids.end())
    return "it has two verdicts: " + *twin;
  if (ids_sha256(ids) != head.cases_sha256) return "it judges cases other than those it chose (cases_sha256)";
  if (head.program_sha256.empty()) return "it does not say which program judged (program_sha256)";
  return "";
}

}  // namespace

std::string text_sha256(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

Verdict stated(const Verdict& verdict) {
  Verdict kept;
  kept.case_id = verdict.case_id;
  kept.provider = verdict.provider;
  kept.variant = verdict.variant;
  kept.status = verdict.status;
  kept.input_kind = verdict.input_kind;
  kept.asked = verdict.asked;
  kept.output_hash = verdict.output_hash;
  return kept;
}

Recount recount(const RunHead& head, std::vector<Verdict> verdicts, const Fixtures& fixtures) {
  Recount counted;
  counted.refusal = unsuited(head, verdicts);
  if (!counted.refusal.empty()) return counted;
  RunReport report = report_from(head, fixtures);
  report.verdicts = std::move(verdicts);
  const Conformance result = conformance(report);
  if (result.is_partial) {
    counted.refusal = "it is partial: " + result.reason;
  } else if (!result.conformant) {
    counted.refusal = "it did not pass: " + result.reason;
  } else if (result.claims.size() != 1) {
    counted.refusal = "it has no claim";
  } else {
    counted.claim = to_json(result.claims.front());
    counted.line = "CONFORMANT: " + result.reason;
  }
  return counted;
}

Json statement_json(const Predicate& predicate) {
  Json rows = Json::array();
  for (const StatedVerdict& row : predicate.verdicts) rows.push_back(row_json(row));
  Json body = {{"vendor", predicate.vendor}, {"product", predicate.product}};
  if (predicate.signer)
    body["signer"] = {{"keyid", predicate.signer->id()}, {"public_key", predicate.signer->pem()}};
  body["claim"] = predicate.claim;
  body["head"] = to_json(predicate.head);
  body["head_sha256"] = predicate.head_sha256;
  body["verdicts"] = std::move(rows);
  return {{"_type", kStatementType},
          {"subject", subjects_json(predicate.head)},
          {"predicateType", kPredicateType},
          {"predicate", std::move(body)}};
}

namespace {

RunHead head_from(const Json& json) try {
  return run_head_from_json(json);
} catch (const std::exception& error) {
  throw std::runtime_error(std::string("head: ") + error.what());
}

}  // namespace

Predicate predicate_from_statement(const Json& statement) {
  require_fields(statement, "statement", {"_type", "subject", "predicateType", "predicate"});
  if (field(statement, "_type") != kStatementType)
    throw std::runtime_error("_type: not an in-toto statement v1");
  if (field(statement, "predicateType") != kPredicateType)
    throw std::runtime_error("predicateType: want " + std::string(kPredicateType));
  const Json& body = statement["predicate"];
  require_fields(body, "predicate", {"vendor", "product", "claim", "head", "head_sha256", "verdicts"},
                 {"signer"});
  Predicate predicate;
  predicate.vendor = field(body, "vendor");
  predicate.product = field(body, "product");
  if (body.contains("signer")) {
    require_fields(body["signer"], "signer", {"keyid", "public_key"});
    predicate.signer = PublicKey::from_pem(field(body["signer"], "public_key"));
    if (predicate.signer->id() != field(body["signer"], "keyid"))
      throw std::runtime_error("signer: keyid is not that of public_key");
  }
  predicate.claim = body["claim"];
  predicate.head = head_from(body["head"]);
  const Json known = to_json(predicate.head);
  for (const auto& [name, value] : body["head"].items())
    if (!known.contains(name)) throw std::runtime_error("head: unknown field '" + name + "'");
  predicate.head_sha256 = field(body, "head_sha256");
  if (statement["subject"] != subjects_json(predicate.head))
    throw std::runtime_error("subject: not the library of the run's provider, and what that has loaded");
  const std::string provider = only_provider(predicate.head).value("name", "");
  if (!body["verdicts"].is_array()) throw std::runtime_error("verdicts: not a list");
  for (const Json& row : body["verdicts"]) predicate.verdicts.push_back(row_from(row, provider));
  return predicate;
}

}  // namespace qcts
