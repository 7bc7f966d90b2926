// SPDX-License-Identifier: BSD-3-Clause
// Hidden subcommand for Python benchmarks: decides claims about speed from their samples, with the statistics
// of the latency cases.
#include <cmath>
#include <iostream>
#include <iterator>

#include "suites/base/json_document.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts::cli {
namespace {

using SpeedJson = nlohmann::ordered_json;

// Returns the interval of times, "numerator" over "denominator", of rounds that alternate forward and
// backward.
Interval interval_of(const SpeedJson& times, const char* numerator, const char* denominator, uint64_t seed) {
  const auto samples = [&](const char* name) {
    const auto us = times.at(name).get<std::vector<double>>();
    for (const double one : us)
      if (!(one > 0 && std::isfinite(one)))
        throw UsageError(std::string("speed: ") + name + " has a time that is not positive");
    return us;
  };
  return abba_interval(samples(numerator), samples(denominator), kLatencyConfidence, seed);
}

SpeedClaim claim_of(const SpeedJson& json, uint64_t seed, bool in_doubt) {
  const std::string kind = json.at("claim"), subject = json.at("subject"), against = json.at("against");
  if (kind != kFaster && kind != kAsFast)
    throw UsageError("speed: no claim '" + kind + "'; there are faster and as_fast");
  const Interval ratio = interval_of(json, "against_us", "subject_us", seed);
  SpeedClaim claim = kind == kFaster ? faster_claim(subject, against, ratio, in_doubt)
                                     : as_fast_claim(subject, against, ratio, in_doubt);
  claim.required = json.value("required", true);
  return claim;
}

Outcome decide_claims(const SpeedJson& request) {
  const uint64_t seed = request.value("seed", uint64_t{1});
  const Interval itself = interval_of(request.at("itself"), "again_us", "first_us", seed);
  const double drift = request.value("canary_drift", 1.0);
  std::string doubt;
  if (alarms(itself)) doubt = "ratio_to_itself is not 1";
  if (doubt.empty() && canary_changed(drift)) doubt = "the canary's speed changed";
  std::vector<SpeedClaim> claims;
  SpeedJson list = SpeedJson::array();
  for (const SpeedJson& claim : request.at("claims")) {
    claims.push_back(claim_of(claim, seed, !doubt.empty()));
    list.push_back(to_json(claims.back()));
  }
  const Status status = gated_status(claims, Decision::met, !doubt.empty());
  print_json("speed", {{"status", status_name(status)}, {"doubt", doubt}, {"speed", list}});
  return status == Status::pass   ? Outcome::conformant
         : status == Status::fail ? Outcome::failed
                                  : Outcome::inconclusive;
}

}  // namespace

void add_speed(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("speed", "decide claims about speed from samples on standard input, as JSON");
  command->group("");
  command->callback([&exit_code] {
    exit_code = exit_code_of([] {
      const std::string text(std::istreambuf_iterator<char>(std::cin), {});
      try {
        return decide_claims(SpeedJson::parse(text));
      } catch (const SpeedJson::exception& error) {
        throw UsageError(std::string("speed: ") + error.what());
      } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("speed: ") + error.what());
      }
    });
  });
}

}  // namespace qcts::cli
