// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <set>

#include "reports/report.h"

namespace qcts {
namespace {

bool is_latency(const Verdict& verdict) { return verdict.case_id.kind == Kind::latency; }

std::string count_of(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Was the kernel asked with an input that no recipe writes, because its provider declares that it takes
// these?
bool is_extra_input(const Verdict& verdict) {
  return !verdict.input_kind.empty() && verdict.input_kind != "reachable";
}

void compare_with_mustpass(const RunReport& report, Conformance& result) {
  std::set<std::string> judged;
  for (const Verdict& verdict : report.verdicts)
    if (!is_latency(verdict) && !is_extra_input(verdict)) judged.insert(verdict.case_id.text());
  std::set_difference(report.mustpass.begin(), report.mustpass.end(), judged.begin(), judged.end(),
                      std::back_inserter(result.missing));
  std::set_difference(judged.begin(), judged.end(), report.mustpass.begin(), report.mustpass.end(),
                      std::back_inserter(result.extra));
  result.present = report.mustpass.size() - result.missing.size();
}

struct Tally {
  size_t failures = 0, internal = 0, blocking_inconclusive = 0, inconclusive = 0, proofs = 0;
  size_t judged = 0;  // without those that a provider declines
};

Tally tally_of(const RunReport& report) {
  Tally tally;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.status == Status::pass || verdict.status == Status::waived) ++tally.proofs;
    if (verdict.status == Status::inconclusive) ++tally.inconclusive;
    const bool blocks = blocks_conformance(verdict, report.gate_latency);
    tally.judged += blocks || verdict.status != Status::not_supported;
    if (!blocks) continue;
    if (verdict.status == Status::internal)
      ++tally.internal;
    else if (verdict.status == Status::inconclusive)
      ++tally.blocking_inconclusive;
    else
      ++tally.failures;
  }
  return tally;
}

std::string broken_floor(const RunReport& report) {
  for (const FloorEntry& entry : report.floor)
    if (entry.passes < entry.floor)
      return "the floor of (" + entry.scheme + ", " + std::string(op_name(entry.op)) + ") is " +
             std::to_string(entry.floor) + " passes, but only " + std::to_string(entry.passes) + " passed";
  return {};
}

// Returns "acme: it can trace the judge" for each provider whose isolation does not reach the floor.
std::string not_isolated(const RunReport& report) {
  static const std::string kBelowFloor = "not isolated";
  std::string found;
  for (const nlohmann::ordered_json& provider : report.providers) {
    const std::string isolation = provider.value("isolation", "");
    if (!isolation.starts_with(kBelowFloor)) continue;
    found += (found.empty() ? "" : "; ") + provider.at("name").get<std::string>() +
             isolation.substr(kBelowFloor.size());
  }
  return found;
}

// `--isolation best` and `off` say so in the provider's own entry.
bool requires_isolation(const RunReport& report) {
  return std::ranges::any_of(report.providers, [](const nlohmann::ordered_json& provider) {
    return provider.value("isolation", "").starts_with("not isolated: ");
  });
}

// One provider was under judgement, and was asked all that it can be.
void decide_by(const ProviderClaim& claim, Conformance& result) {
  result.is_partial = !claim.is_conformant();
  result.outcome = result.is_partial ? Outcome::nothing_proved : Outcome::conformant;
  result.reason = result.is_partial ? claim.lack() + "; " + claim.text() : claim.text();
  result.conformant = !result.is_partial && result.not_isolated.empty();
}

void decide(const RunReport& report, Conformance& result) {
  const Tally tally = tally_of(report);
  const std::string floor = result.complete ? broken_floor(report) : std::string();
  if (tally.failures > 0) {
    result.outcome = Outcome::failed;
    result.reason =
        std::to_string(tally.failures) + " of " + count_of(tally.judged, "judged case") + " failed";
  } else if (!report.infrastructure.empty() || tally.internal > 0) {
    result.outcome = Outcome::infrastructure;
    result.reason = report.infrastructure.empty()
                        ? count_of(tally.internal, "case") + " failed because of a fault in qcts itself"
                        : report.infrastructure.front();
  } else if (report.verdicts.empty()) {
    result.outcome = Outcome::nothing_proved;
    result.reason = "no case was selected";
  } else if (result.complete && !result.missing.empty()) {
    result.outcome = Outcome::failed;
    result.reason =
        count_of(result.missing.size(), "mustpass case") + " had no verdict, first " + result.missing.front();
  } else if (std::string broken = broken_promise(report); !broken.empty()) {
    result.outcome = Outcome::failed;
    result.reason = std::move(broken);
  } else if (!floor.empty()) {
    result.outcome = Outcome::failed;
    result.reason = floor;
  } else if (tally.blocking_inconclusive > 0 || (tally.proofs == 0 && tally.inconclusive > 0)) {
    result.outcome = Outcome::inconclusive;
    result.reason = count_of(tally.inconclusive, "measurement") + " inconclusive";
  } else if (std::string declined = declined_everything(report); tally.proofs == 0 || !declined.empty()) {
    result.outcome = Outcome::nothing_proved;
    result.reason = declined.empty() ? "every selected case is not supported" : std::move(declined);
  } else if ((result.complete || !result.claims.empty()) && requires_isolation(report)) {
    result.outcome = Outcome::infrastructure;
    result.reason = "not isolated, so conformance is not stated: " + result.not_isolated;
  } else if (!result.complete && result.claims.size() == 1) {
    decide_by(result.claims.front(), result);
  } else {
    result.outcome = Outcome::conformant;
    result.reason = result.missing.empty()
                        ? "every mustpass case is pass, waived, or declared not supported"
                        : std::to_string(result.present) + " of " + std::to_string(report.mustpass.size()) +
                              " mustpass cases asked";
  }
}

}  // namespace

bool blocks_conformance(const Verdict& verdict, bool gate_latency) {
  switch (verdict.status) {
    case Status::pass:
    case Status::waived:
    case Status::robustness:
      return false;
    case Status::not_supported:
      return verdict.provider == "qcts";  // a provider may decline; the suite's own readers may not
    case Status::weak_evidence:
    case Status::inconclusive:
      return !is_latency(verdict) || (gate_latency && !verdict.is_peer);
    default:
      return true;
  }
}

std::string conformance_rule(bool gate_latency) {
  return std::string(
             "Conformant: every case of the mustpass list is pass, waived by a waiver that has not expired, "
             "or not_supported with the "
             "provider's own reason; and every (scheme, operation) reaches its floor of passes. A run of "
             "one provider under the complete plan states what it serves: at least half of the mustpass "
             "cases that it can be asked, some of each family of inputs, where at most five limits of types, "
             "policies, layouts and sizes explain all that it declines. fail, "
             "weak_evidence, xpass, crash, "
             "timeout, resource, inconclusive and internal are not conformant. robustness, a "
             "wrong answer on a hostile input where the provider promises none, gates nothing. "
             "Passes on emulated evidence "
             "are counted separately and "
             "confirm nothing. Latency is reported") +
         (gate_latency ? " and gates this run, except for peers."
                       : " and does not gate this run (--gate latency).");
}

void count_floor(RunReport& report) {
  std::map<std::pair<std::string, Op>, std::set<std::string>> passed;  // by scheme and op
  for (const Verdict& verdict : report.verdicts)
    if (verdict.status == Status::pass && !is_latency(verdict) && !is_extra_input(verdict))
      passed[{verdict.case_id.scheme, verdict.case_id.op}].insert(verdict.case_id.text());
  for (FloorEntry& entry : report.floor) entry.passes = passed[{entry.scheme, entry.op}].size();
}

bool is_narrowed(const RunReport& report) {
  return !std::ranges::all_of(report.selection, [](const std::string& word) {
    return word.starts_with("--plan ") || word.starts_with("--provider ") || word.starts_with("--peer ") ||
           word.starts_with("--device ");
  });
}

Conformance conformance(const RunReport& report) {
  Conformance result;
  result.complete = report.selection.empty();
  result.not_isolated = not_isolated(report);
  compare_with_mustpass(report, result);
  result.claims = provider_claims(report);
  decide(report, result);
  if (result.outcome == Outcome::conformant && result.missing.empty() && result.not_isolated.empty())
    result.conformant = true;
  return result;
}

}  // namespace qcts
