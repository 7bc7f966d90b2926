// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_head.h"

#include "fixtures/golden.h"
#include "suites/base/paths.h"
#include "suites/base/terminal.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/cases/named.h"
#include "suites/run/device_choice.h"
#include "suites/run/environment/environment.h"
#include "suites/run/run_report.h"
#include "suites/run/summary/summary.h"

namespace qcts {
namespace {

// Returns the arguments that restrict the cases, without the shard.
std::vector<std::string> narrowing_words(const RunRequest& request) {
  std::vector<std::string> words;
  const Selection& selection = request.selection;
  if (request.plan != kCompletePlan) words.push_back("--plan " + request.plan);
  for (const std::string& filter : selection.filters) words.push_back("--filter " + shell_word(filter));
  for (const std::string& exclude : selection.excludes) words.push_back("--exclude " + shell_word(exclude));
  for (const std::string& kind : selection.kinds) words.push_back("--kind " + kind);
  for (const std::string& scheme : selection.schemes) words.push_back("--scheme " + scheme);
  for (const std::string& provider : request.providers) words.push_back("--provider " + shell_word(provider));
  if (!request.providers.empty())  // otherwise a peer is added and nothing is left out
    for (const std::string& peer : request.peers) words.push_back("--peer " + shell_word(peer));
  if (request.device) words.push_back("--device " + device_word(request.device));
  if (!selection.variant.empty()) words.push_back("--variant " + selection.variant);
  if (request.case_timeout_s) words.push_back("--timeout " + fixed(*request.case_timeout_s, 0));
  return words;
}

}  // namespace

RunHead head_of(const RunRequest& request, const Plan& plan,
                const std::vector<std::filesystem::path>& folders) {
  RunHead head;
  head.suite_version = suite_version();
  head.suite_commit = request.commit.empty() ? "unknown" : request.commit;
  head.plan = plan.name;
  head.plan_sha256 = file_sha256(plan_path(request.plan));
  head.fixtures_sha256 = fixtures_sha256(folders);
  head.mustpass_sha256 =
      mustpass_sha256(load_mustpass(repository_root() / "suites" / "mustpass" / "default.txt"));
  head.started_utc = utc_now();
  head.arguments = request.arguments;
  if (request.seed_sha256.empty()) head.seed = request.seed;
  head.seed_sha256 = request.seed_sha256;
  head.threads = request.threads;
  head.memory_limit_bytes = request.memory_limit_bytes;
  head.gate_latency = request.gate_latency;
  for (const std::filesystem::path& folder : request.fixtures) head.fixtures.push_back(folder.string());
  head.environment = environment_json();
  head.shard = request.selection.shard;
  head.shards = request.selection.shards;
  head.selection = narrowing_words(request);
  if (!request.list) head.program_sha256 = file_sha256(program_path());
  return head;
}

}  // namespace qcts
