// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/static_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reference/schemes/scheme.h"
#include "suites/cases/expand.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

template <class Keep>
void keep_rows(Json& table, Keep keep) {
  Json kept = Json::array();
  for (Json& row : table)
    if (keep(row)) kept.push_back(std::move(row));
  table = std::move(kept);
}

std::string family_of(const std::string& scheme) {
  const Scheme* known = find_scheme(scheme);
  return known == nullptr ? scheme : std::string(known->family());
}

// The subjects of a report's verdicts: inputs and kernels.
struct Judged {
  explicit Judged(const RunReport& report) {
    for (const Verdict& verdict : report.verdicts) {
      const CaseId& id = verdict.case_id;
      inputs[id.scheme].insert(id.input);
      kernels.insert({verdict.provider, std::string(op_name(id.op)), family_of(id.scheme)});
      providers.insert(verdict.provider);
    }
  }
  bool has_golden(const std::string& id) const {
    return std::ranges::any_of(inputs, [&](const auto& of_scheme) {
      const std::string input = golden_input(id, of_scheme.first);
      const auto at = of_scheme.second.lower_bound(input);
      return at != of_scheme.second.end() && (*at == input || at->starts_with(input + "_"));
    });
  }
  bool has_kernel(const std::string& provider, const Json& implementation) const {
    const std::string scheme = implementation.at("scheme"), op = implementation.at("op");
    if (op == "load_save") return kernels.lower_bound({provider, "file", ""}) != kernels.end();
    return kernels.contains({provider, op, scheme.substr(0, scheme.find(':'))});
  }
  std::map<std::string, std::set<std::string>> inputs;                  // by scheme
  std::set<std::tuple<std::string, std::string, std::string>> kernels;  // provider, op, family
  std::set<std::string> providers;
};

}  // namespace

void keep_rows_of_what_ran(RunReport& report) {
  if (report.selection.empty()) return;
  const Judged judged(report);
  for (Json& provider : report.providers) {
    const std::string name = provider.at("name");
    keep_rows(provider.at("implementations"), [&](const Json& row) { return judged.has_kernel(name, row); });
  }
  keep_rows(report.schemes, [&](const Json& row) { return judged.inputs.contains(row.at("name")); });
  keep_rows(report.goldens, [&](const Json& row) { return judged.has_golden(row.at("id")); });
  // A choice stays with all its options, so that the other answers can be read; of their schemes only those
  // that ran.
  for (Json& choice : report.ledger.at("choices"))
    for (Json& option : choice.at("options"))
      keep_rows(option.at("schemes"), [&](const Json& scheme) { return judged.inputs.contains(scheme); });
  keep_rows(report.ledger.at("choices"), [&](const Json& choice) {
    return std::ranges::any_of(choice.at("options"),
                               [&](const Json& option) { return !option.at("schemes").empty(); });
  });
  keep_rows(report.ledger.at("claims"), [](const Json&) { return false; });
  if (report.ledger.contains("kept_layouts"))
    keep_rows(report.ledger.at("kept_layouts"), [](const Json&) { return false; });
  if (report.readers.is_object())
    keep_rows(report.readers.at("files"),
              [&](const Json& row) { return judged.has_golden(row.at("golden")); });
  std::erase_if(report.floor, [&](const FloorEntry& entry) {
    return std::ranges::none_of(report.verdicts, [&](const Verdict& verdict) {
      return verdict.case_id.scheme == entry.scheme && verdict.case_id.op == entry.op;
    });
  });
}

}  // namespace qcts
