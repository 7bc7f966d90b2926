// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/sarif.h"

#include <cctype>
#include <map>
#include <stdexcept>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchemaUri =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

// A path as a relative or absolute URI (RFC 3986): bytes that may not stand in one are escaped.
std::string uri_of(const std::string& path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = path.starts_with("/") ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("/._-~").find(c) != std::string_view::npos)
      uri += c;
    else
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return uri;
}

class Sarif {
 public:
  Sarif(std::string file, const std::string& suite_version)
      : file_(std::move(file)), suite_version_(suite_version) {}

  void add(const std::string& rule, const std::string& what, const char* level, const std::string& text,
           const Json& offset = nullptr) {
    if (!rule_index_.contains(rule)) {
      rule_index_[rule] = rules_.size();
      rules_.push_back({{"id", rule}, {"shortDescription", {{"text", what}}}});
    }
    Json place = {{"artifactLocation", {{"uri", uri_of(file_)}}}};
    if (!offset.is_null()) place["region"] = {{"byteOffset", offset}, {"byteLength", 1}};
    results_.push_back({{"ruleId", rule},
                        {"ruleIndex", rule_index_[rule]},
                        {"level", level},
                        {"message", {{"text", text}}},
                        {"locations", {{{"physicalLocation", place}}}}});
  }

  Json json() && {
    const Json driver = {{"name", "qcts"}, {"version", suite_version_}, {"rules", rules_}};
    return {{"$schema", kSchemaUri},
            {"version", "2.1.0"},
            {"runs", {{{"tool", {{"driver", driver}}}, {"results", results_}}}}};
  }

 private:
  const std::string file_, suite_version_;
  std::map<std::string, size_t> rule_index_;
  Json rules_ = Json::array(), results_ = Json::array();
};

std::string named(const Json& finding) {
  const std::string tensor = finding.value("tensor", ""), text = finding.value("text", "");
  return tensor.empty() || text.find(tensor) != text.npos ? text : tensor + ": " + text;
}

void add_report(const Json& report, Sarif& sarif) {
  for (const Json& finding : report.at("findings")) {
    const bool is_foreign = finding.at("kind") == "foreign";
    sarif.add(finding.at("kind"),
              is_foreign ? "a format that qcts recognizes but cannot read"
                         : "tensors contradict each other or the config",
              is_foreign ? "warning" : "error", named(finding));
  }
  for (const Json& finding : report.at("values").at("findings"))
    sarif.add("values." + finding.at("rule").get<std::string>(),
              "a value that the scheme's recipe cannot write", "error",
              finding.at("tensor").get<std::string>() + ": " + finding.at("plane").get<std::string>() + " " +
                  finding.at("place").get<std::string>() + " is " + finding.at("value").get<std::string>() +
                  "; expected " + finding.at("expected").get<std::string>());
  for (const Json& verdict : report.at("verdicts")) {
    const std::string status = verdict.at("status"), id = verdict.at("case_id"),
                      rule = id.substr(0, id.find('/'));
    if (status == "pass" || status == "not_supported" || rule.starts_with("values")) continue;
    sarif.add(rule, "a question that `qcts check` asks about every file", "error",
              status + ": " + verdict.value("reason", ""));
  }
}

}  // namespace

Json sarif_json(const Json& document, const std::string& suite_version) {
  const std::string what = document.is_object() ? document.value("qcts", "") : "";
  if (what != "check" && what != "refusal") throw std::runtime_error("not what `qcts check --json` prints");
  Sarif sarif(document.value("file", ""), suite_version);
  if (what == "check") {
    add_report(document, sarif);
  } else {
    const Json& refusal = document.at("refusal");
    sarif.add(refusal.at("class"), "the file is refused", "error", refusal.at("detail"),
              refusal.at("offset"));
  }
  return std::move(sarif).json();
}

}  // namespace qcts
