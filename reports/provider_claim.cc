// SPDX-License-Identifier: BSD-3-Clause
#include "reports/provider_claim.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "reports/report.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOwn[] = {"qcts", "builtin", "reference", "absent"};
constexpr size_t kNamesShown = 6, kIdsShown = 100;
constexpr const char* kAnyScheme = "any";

// Those that someone wants to know about.
std::vector<const Json*> judged_providers(const RunReport& report) {
  std::vector<const Json*> found;
  for (const Json& provider : report.providers)
    if (!is_part_of_qcts(provider.value("name", "")) && !provider.value("peer", false))
      found.push_back(&provider);
  return found;
}

// Did only the choice of providers, or of the GPU on which kernels run, narrow the run?
bool is_whole_of_providers(const RunReport& report) {
  const Json device = report.environment.value("device", Json());
  if (!report.shard.empty() || !report.stopped.empty() || (device.is_object() && device.value("fake", false)))
    return false;
  std::set<std::string> kinds;
  for (const std::string& word : report.selection) {
    if (device.is_object() && word.starts_with("--kind "))
      kinds.insert(word);
    else if (!word.starts_with("--provider ") && !word.starts_with("--peer ") &&
             !word.starts_with("--device "))
      return false;
  }
  return kinds.size() != 1;  // on a device, both kinds are asked
}

struct CaseResult {
  const Verdict* verdict = nullptr;  // of the variant that says most: a pass, or else what is left
  bool passed = false, declined = true;
};

bool is_mustpass(const RunReport& report, const std::string& id) {
  return std::ranges::binary_search(report.mustpass, id);
}

using PartKey = std::pair<Op, std::string>;

PartKey part_of(const CaseId& id) { return {id.op, id.op == Op::file ? kAnyScheme : id.scheme}; }

// The mustpass cases that the provider was asked, by part and id.
std::map<PartKey, std::map<std::string, CaseResult>> results_of(const RunReport& report,
                                                                const std::string& provider) {
  std::map<PartKey, std::map<std::string, CaseResult>> results;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.provider != provider || !verdict.asked || verdict.case_id.kind == Kind::latency) continue;
    const std::string id = verdict.case_id.text();
    if (!is_mustpass(report, id)) continue;
    CaseResult& result = results[part_of(verdict.case_id)][id];
    const bool passed = verdict.status == Status::pass || verdict.status == Status::waived;
    if (result.verdict == nullptr || (passed && !result.passed)) result.verdict = &verdict;
    result.passed = result.passed || passed;
    result.declined = result.declined && verdict.status == Status::not_supported;
  }
  return results;
}

const std::string& main_dtype(const Asked& asked) {
  return asked.x_dtype.empty() ? asked.w_dtype : asked.x_dtype;
}

bool is_of_words(const Limit& limit) {
  return limit.rule == LimitRule::equal || limit.rule == LimitRule::mixed;
}

std::vector<std::string> missing_families(const std::map<std::string, CaseResult>& results,
                                          const std::vector<Limit>& limits) {
  std::map<std::string, bool> missing;  // true: without a pass, and no limit excludes all its cases
  std::set<std::string> present;
  for (const auto& [id, result] : results) {
    const Asked& asked = *result.verdict->asked;
    if (result.passed) present.insert(asked.family);
    const bool excluded = std::ranges::any_of(
        limits, [&](const Limit& limit) { return is_of_words(limit) && limit.matches(asked); });
    missing[asked.family] = missing[asked.family] || !excluded;
  }
  std::vector<std::string> found;
  for (const auto& [family, is_missing] : missing)
    if (is_missing && !present.contains(family)) found.push_back(family);
  return found;
}

std::string part_name(Op op, const std::string& scheme) {
  return op == Op::file ? "files" : std::string(op_name(op)) + " of " + scheme;
}

// Schemes that differ only in parameters share their limits.
std::string family_of(const RunReport& report, const std::string& scheme) {
  for (const Json& row : report.schemes)
    if (row.value("name", "") == scheme) return row.value("family", scheme);
  return scheme;
}

// Returns by id whether any variant of the provider served the case.
std::map<std::string, bool> served_cases(const RunReport& report, const std::string& provider) {
  std::map<std::string, bool> served;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.provider != provider) continue;
    bool& is_served = served[verdict.case_id.text()];
    is_served = is_served || verdict.status != Status::not_supported;
  }
  return served;
}

std::string broken_text(const PromisedProfile& promised, const char* what,
                        const std::vector<std::string>& ids) {
  return promised.provider + " promises " + promised.names + ", but " + what + " " +
         std::to_string(ids.size()) + " of its " + std::to_string(promised.cases.size()) + " cases, first " +
         ids.front();
}

std::string broken_promise_of(const RunReport& report, const std::string& provider) {
  const auto promised = std::ranges::find(report.profiles, provider, &PromisedProfile::provider);
  if (promised == report.profiles.end()) return "";
  const std::map<std::string, bool> served = served_cases(report, provider);
  std::vector<std::string> declined, without_kernel;
  for (const std::string& id : promised->cases) {
    const auto found = served.find(id);
    if (found == served.end())
      without_kernel.push_back(id);
    else if (!found->second)
      declined.push_back(id);
  }
  if (!declined.empty()) return broken_text(*promised, "declined", declined);
  if (is_whole_of_providers(report) && !without_kernel.empty())
    return broken_text(*promised, "has no kernel for", without_kernel);
  return "";
}

class ClaimMaker {
 public:
  ClaimMaker(const RunReport& report, const Json& provider)
      : report_(report), results_(results_of(report, provider.value("name", ""))) {
    claim_.provider = provider.value("name", "");
    claim_.version = provider.value("version", "");
    claim_.profile = provider.value("profile", "");
    claim_.options = provider.value("options", std::vector<std::string>());
    claim_.broken_promise = broken_promise_of(report, claim_.provider);
  }

  ProviderClaim made() {
    std::map<std::pair<Op, std::string>, std::vector<PartKey>> families;
    for (const auto& [key, results] : results_) {
      if (std::ranges::any_of(results, [](const auto& row) { return row.second.passed; }))
        families[{key.first, family_of(report_, key.second)}].push_back(key);
      else
        claim_.unserved.push_back(part_name(key.first, key.second));
    }
    for (const auto& [family, keys] : families) add_family(keys);
    return std::move(claim_);
  }

 private:
  void add_family(const std::vector<PartKey>& keys) {
    std::vector<AskedCase> cases;
    std::vector<const std::string*> ids;
    for (const PartKey& key : keys)
      for (const auto& [id, result] : results_.at(key)) {
        cases.push_back({&*result.verdict->asked, result.declined});
        ids.push_back(&id);
      }
    const DeclineLimits limits = limits_of(cases);
    for (const size_t i : limits.irregular) claim_.irregular.push_back(*ids[i]);
    for (const Limit& limit : limits.rules) add_limit(limit);
    for (const PartKey& key : keys) add_part(key, limits.rules);
  }

  void add_limit(const Limit& limit) {
    const auto same = std::ranges::find(claim_.limits, limit.text(), &Limit::text);
    if (same == claim_.limits.end())
      claim_.limits.push_back(limit);
    else
      same->cases += limit.cases;
  }

  void add_part(const PartKey& key, const std::vector<Limit>& limits) {
    ServedPart part;
    part.op = key.first;
    part.scheme = key.second;
    const auto& results = results_.at(key);
    part.asked = results.size();
    for (const auto& [id, result] : results) {
      part.passed += result.passed;
      part.declined += result.declined;
      if (!result.passed) continue;
      const Asked& asked = *result.verdict->asked;
      if (!asked.policy.empty()) part.policies.insert(asked.policy);
      if (!main_dtype(asked).empty()) part.dtypes.insert(main_dtype(asked));
    }
    part.missing_families = missing_families(results, limits);
    claim_.parts.push_back(std::move(part));
  }

  const RunReport& report_;
  const std::map<PartKey, std::map<std::string, CaseResult>> results_;
  ProviderClaim claim_;
};

std::string short_dtype(const std::string& name) {
  static const std::map<std::string, std::string> kShort = {
      {"bfloat16", "bf16"}, {"float16", "f16"}, {"float32", "f32"}, {"float64", "f64"}};
  const auto known = kShort.find(name);
  return known == kShort.end() ? name : known->second;
}

std::string joined(const std::vector<std::string>& names, const char* separator, size_t shown) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < shown; ++i) text += (i == 0 ? "" : separator) + names[i];
  if (names.size() > shown) text += separator + std::to_string(names.size() - shown) + " more";
  return text;
}

// "linear of int8_row and int4_plain_g32, files"
std::string parts_text(const std::vector<ServedPart>& parts) {
  std::vector<std::pair<Op, std::vector<std::string>>> by_op;
  for (const ServedPart& part : parts) {
    if (by_op.empty() || by_op.back().first != part.op) by_op.push_back({part.op, {}});
    by_op.back().second.push_back(part.scheme);
  }
  std::vector<std::string> lines;
  for (const auto& [op, schemes] : by_op) lines.push_back(part_name(op, joined(schemes, " ", kNamesShown)));
  return joined(lines, ", ", lines.size());
}

template <typename Numbers>
uint64_t sum_of(const std::vector<ServedPart>& parts, Numbers number) {
  uint64_t sum = 0;
  for (const ServedPart& part : parts) sum += part.*number;
  return sum;
}

Json limit_json(const Limit& limit) { return {{"text", limit.text()}, {"cases", limit.cases}}; }

Json part_json(const ServedPart& part) {
  return {{"op", op_name(part.op)},    {"scheme", part.scheme},
          {"asked", part.asked},       {"passed", part.passed},
          {"declined", part.declined}, {"policies", part.policies},
          {"dtypes", part.dtypes},     {"missing_families", part.missing_families}};
}

}  // namespace

bool is_part_of_qcts(const std::string& provider) {
  return std::ranges::find(kOwn, provider) != std::end(kOwn);
}

bool ServedPart::is_enough() const {
  return 2 * passed >= asked && passed + declined == asked && missing_families.empty();
}

uint64_t ProviderClaim::asked() const { return sum_of(parts, &ServedPart::asked); }
uint64_t ProviderClaim::passed() const { return sum_of(parts, &ServedPart::passed); }
uint64_t ProviderClaim::declined() const { return sum_of(parts, &ServedPart::declined); }

bool ProviderClaim::is_conformant() const {
  if (parts.empty()) return false;
  if (!profile.empty()) return broken_promise.empty();
  return irregular.empty() && std::ranges::all_of(parts, &ServedPart::is_enough);
}

std::string ProviderClaim::text() const {
  std::set<std::string> policies, dtypes;
  for (const ServedPart& part : parts) {
    policies.insert(part.policies.begin(), part.policies.end());
    for (const std::string& dtype : part.dtypes) dtypes.insert(short_dtype(dtype));
  }
  std::string text = (profile.empty() ? "" : profile + ": ") + provider +
                     (version.empty() ? "" : " " + version) + ", " + parts_text(parts);
  for (const auto* words : {&policies, &dtypes})
    if (!words->empty()) text += ", " + joined({words->begin(), words->end()}, " ", words->size());
  text += " (" + std::to_string(passed()) + " of " + std::to_string(asked() - declined());
  std::vector<std::string> rules;
  for (const Limit& limit : limits) rules.push_back(limit.text() + ", " + std::to_string(limit.cases));
  if (!irregular.empty()) rules.push_back("irregular, " + std::to_string(irregular.size()));
  if (!rules.empty()) text += "; declined: " + joined(rules, "; ", kMaxLimits + 1);
  if (!unserved.empty()) text += "; not served: " + joined(unserved, ", ", kNamesShown);
  return text + ")";
}

std::string ProviderClaim::lack() const {
  if (!broken_promise.empty()) return broken_promise;
  if (!profile.empty()) return "";
  for (const ServedPart& part : parts)
    if (2 * part.passed < part.asked)
      return part_name(part.op, part.scheme) + ": " + std::to_string(part.passed) + " of " +
             std::to_string(part.asked) + " mustpass cases pass, fewer than half";
  for (const ServedPart& part : parts)
    if (part.passed + part.declined != part.asked)
      return part_name(part.op, part.scheme) + ": " +
             std::to_string(part.asked - part.passed - part.declined) + " of " + std::to_string(part.asked) +
             " mustpass cases neither pass nor are declined";
  for (const ServedPart& part : parts)
    if (!part.missing_families.empty())
      return part_name(part.op, part.scheme) + ": " + std::to_string(part.passed) + " of " +
             std::to_string(part.asked) + " mustpass cases pass, none of " +
             joined(part.missing_families, ", ", kNamesShown);
  if (!irregular.empty())
    return std::to_string(irregular.size()) + " of " + std::to_string(declined()) +
           " declined cases follow no rule, first " + irregular.front();
  return "";
}

std::vector<ProviderClaim> provider_claims(const RunReport& report) {
  std::vector<ProviderClaim> claims;
  if (!is_whole_of_providers(report)) return claims;
  for (const Json* provider : judged_providers(report))
    if (ProviderClaim claim = ClaimMaker(report, *provider).made(); !claim.parts.empty())
      claims.push_back(std::move(claim));
  return claims;
}

std::string broken_promise(const RunReport& report) {
  for (const PromisedProfile& promised : report.profiles)
    if (std::string broken = broken_promise_of(report, promised.provider); !broken.empty()) return broken;
  return "";
}

std::string declined_everything(const RunReport& report) {
  for (const Json* provider : judged_providers(report)) {
    const std::string name = provider->value("name", "");
    std::set<std::string> ids;
    std::map<std::string, size_t> reasons;
    bool declined = true;
    for (const Verdict& verdict : report.verdicts) {
      if (verdict.provider != name) continue;
      declined = declined && verdict.status == Status::not_supported;
      ids.insert(verdict.case_id.text());
      ++reasons[verdict.reason];
    }
    if (!declined || ids.empty()) continue;
    const auto most = std::ranges::max_element(reasons, {}, [](const auto& row) { return row.second; });
    return name + " declined all " + std::to_string(ids.size()) + " cases" +
           (reasons.size() == 1 ? ": " : ", most with: ") + most->first;
  }
  return "";
}

Json to_json(const ProviderClaim& claim) {
  Json parts = Json::array(), limits = Json::array();
  for (const ServedPart& part : claim.parts) parts.push_back(part_json(part));
  for (const Limit& limit : claim.limits) limits.push_back(limit_json(limit));
  return {{"provider", claim.provider},
          {"version", claim.version},
          {"profile", claim.profile},
          {"options", claim.options},
          {"conformant", claim.is_conformant()},
          {"text", claim.text()},
          {"lack", claim.lack()},
          {"parts", parts},
          {"limits", limits},
          {"unserved", claim.unserved},
          {"irregular_total", claim.irregular.size()},
          {"irregular",
           std::vector<std::string>(
               claim.irregular.begin(),
               claim.irregular.begin() + static_cast<int64_t>(std::min(kIdsShown, claim.irregular.size())))}};
}

}  // namespace qcts
