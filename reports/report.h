// SPDX-License-Identifier: BSD-3-Clause
// The result of a run and its written forms:
// report.json (report.schema.json) and junit.xml. reports/page/ writes report.html.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/latency_trust.h"
#include "reports/provider_claim.h"
#include "reports/verdict.h"
#include "reports/waivers.h"

namespace qcts {

inline constexpr int kReportSchema = 4;

// Exit codes of `qcts run`.
enum class Outcome : int {
  conformant = 0,
  failed = 1,
  usage = 2,
  nothing_proved = 3,
  inconclusive = 4,
  infrastructure = 5
};

struct FloorEntry {
  std::string scheme;
  Op op = Op::file;
  uint64_t floor = 0;   // number of distinct case ids that must pass
  uint64_t passes = 0;  // number of distinct case ids that passed
};

// The number of cases for which --budget left no time.
using LeftOut = std::map<std::pair<Kind, Op>, uint64_t>;

struct RunReport {
  std::string suite_version, suite_commit;
  std::string plan, started_utc, shard;           // shard "1/3"; empty if there is none
  std::vector<std::string> arguments, selection;  // selection: every option that narrowed the run
  double wall_s = 0;
  uint64_t host_round_trips = 0;  // for these verdicts; only the summary reports them
  std::string stopped;            // why some cases were not judged, or ""
  LeftOut left_out;
  uint64_t seed = 0;
  std::string seed_sha256;  // of the file with a secret seed, or ""
  bool gate_latency = false;
  std::vector<std::string> fixtures;

  // The caller fills these fields, and they are written unchanged.
  nlohmann::ordered_json environment = nlohmann::ordered_json::object();
  nlohmann::ordered_json providers = nlohmann::ordered_json::array();
  nlohmann::ordered_json schemes = nlohmann::ordered_json::array();
  nlohmann::ordered_json goldens = nlohmann::ordered_json::array();
  // Choices on which implementations disagree, and documented claims that do not hold.
  nlohmann::ordered_json ledger = {{"choices", nlohmann::ordered_json::array()},
                                   {"claims", nlohmann::ordered_json::array()}};
  nlohmann::ordered_json readers = nullptr;  // fixtures/readers.json; null if there is none
  // Value coverage of the verdicts, by scheme.
  nlohmann::ordered_json coverage = nlohmann::ordered_json::array();
  nlohmann::ordered_json changes =
      nullptr;  // changes_json() of suites/comparison; null if there is no earlier run
  std::string latency_note;
  LatencyTrust latency_trust;

  std::vector<std::string> mustpass;  // sorted case ids
  std::string mustpass_file, mustpass_sha256;
  std::vector<FloorEntry> floor;
  std::vector<PromisedProfile> profiles;  // of providers that promise one
  std::vector<Waiver> waivers;
  std::vector<Verdict> verdicts;            // sorted by full id; waivers applied
  std::vector<std::string> infrastructure;  // failures outside of any case: "provider aten: ..."
};

struct Conformance {
  Outcome outcome = Outcome::nothing_proved;
  // True if the outcome is conformant, and every mustpass case was judged or every one that the only provider
  // under judgement can be asked.
  bool conformant = false;
  bool complete = false;  // true if nothing narrowed the run
  std::string reason;     // one sentence
  // Providers that could have changed their own verdicts, and how; empty if there are none. Conformance is
  // not stated then.
  std::string not_isolated;
  // What the run shows of each provider that it judged in full (provider_claim.h).
  std::vector<ProviderClaim> claims;
  // The one provider under judgement serves too little, or follows no rule in what it declines.
  bool is_partial = false;
  // case ids in mustpass that were not judged; judged case ids that are not in mustpass
  std::vector<std::string> missing, extra;
  uint64_t present = 0;
};

// Fills floor[].passes.
void count_floor(RunReport& report);
Conformance conformance(const RunReport& report);
// Returns true if the user chose some of the cases. Choosing a plan or providers does not count.
bool is_narrowed(const RunReport& report);
// Returns the text of the report's section "what conformance means".
std::string conformance_rule(bool gate_latency);
// Returns true if this verdict prevents conformance.
// A latency verdict does so only if it gates or if the kernel failed.
bool blocks_conformance(const Verdict& verdict, bool gate_latency);

// Returns the model of the run: cells, groups and failures. The record has every verdict.
nlohmann::ordered_json report_json(const RunReport& report);
// Writes the report with one line for each row of a list.
std::string report_text(const nlohmann::ordered_json& report);
// Names the machine of a run's environment: "AMD EPYC", or "NVIDIA H100, AMD EPYC" if a GPU computed.
std::string machine_text(const nlohmann::ordered_json& environment);

// junit.xml has a testcase for each cell (kind, operation, scheme and implementation), or for each verdict.
enum class JunitForm { cells, cases };
std::string junit_xml(const RunReport& report, JunitForm form = JunitForm::cells);

}  // namespace qcts
