// SPDX-License-Identifier: BSD-3-Clause
// qcts shrink ID: makes a failing case small enough to send. qcts replay FILE: runs it on a kernel again.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>

#include "fixtures/golden.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/cli/command_line.h"
#include "suites/cli/selftest.h"
#include "suites/judge/replay.h"
#include "suites/run/provider_worker.h"

namespace qcts::cli {
namespace {

constexpr size_t kTargetBytes = 4096;

struct ReplayArguments {
  std::string id, provider = "builtin", plan = "default", variant;
  std::filesystem::path file;
  uint64_t seed = 0, budget = 4000;
  uint32_t threads = 1;
  double timeout_s = 60;
};

JudgeContext context_of(const ReplayArguments& words) {
  JudgeContext context;
  context.program = program_word();
  context.threads = words.threads;
  context.seed = words.seed;
  return context;
}

// Does the status count as a failure for shrink and replay: a wrong answer or none?
bool is_failure(Status status) {
  return status == Status::fail || status == Status::crash || status == Status::timeout ||
         status == Status::resource;
}

// "fail: the reason", "pass"
std::string said(const Verdict& verdict) {
  return std::string(status_name(verdict.status)) + (verdict.reason.empty() ? "" : ": " + verdict.reason);
}

void write_replay(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error(file.string() + " cannot be written");
}

Outcome shrink_found(const ReplayArguments& words, const OfferedCase& found, ProviderWorker& worker) {
  const Offer& offer = *found.offer;
  const TestVector test_vector = make_test_vector(found.asked, words.seed);
  const Replay start{test_vector.input, test_vector.exact_sums, found.asked.id,
                     offer.provider + "_" + offer.variant};
  // A smaller input must fail in the same way. An input that can no longer be judged counts as not failing.
  Verdict last = worker.ask(start, offer, words.timeout_s);
  const Status wanted = last.status;
  if (!is_failure(wanted)) {
    std::cerr << "qcts: " << found.full_id << " does not fail here\n";
    return Outcome::nothing_proved;
  }
  const auto fails = [&](const Replay& replay) {
    Verdict verdict = worker.ask(replay, offer, words.timeout_s);
    if (verdict.status != wanted) return false;
    last = std::move(verdict);
    return true;
  };
  ShrinkStats stats;
  const Replay smallest = shrink(start, fails, words.budget, &stats);
  const std::string text = replay_text(smallest);
  write_replay(words.file, text);
  const KernelInput &was = start.input, &is = smallest.input;
  std::printf("%s: m %lld n %lld k %lld -> m %lld n %lld k %lld, %zu bytes%s, %llu tries\n",
              words.file.c_str(), static_cast<long long>(was.m), static_cast<long long>(was.weight.n),
              static_cast<long long>(was.weight.k), static_cast<long long>(is.m),
              static_cast<long long>(is.weight.n), static_cast<long long>(is.weight.k), text.size(),
              text.size() > kTargetBytes ? " (more than 4 KiB)" : "",
              static_cast<unsigned long long>(stats.tried));
  std::cout << (wanted == Status::fail ? last.reason : said(last)) << "\nrerun: " << program_word()
            << " replay " << shell_word(words.file.string()) << " --provider " << shell_word(words.provider)
            << "\n";
  return Outcome::conformant;
}

Outcome shrink_case(const ReplayArguments& words) {
  const std::string provider = located_provider(words.provider);
  const qcts::Plan plan = named_plan(words.plan);
  ProviderWorker worker(provider, context_of(words));
  OfferTable offers;
  offers.add(worker.offers());
  const Fixtures fixtures = load_fixtures(fixtures_folder());
  std::vector<std::string> ids;
  for (const OfferedCase& each : expand_offered(plan, {fixtures.goldens, fixtures.malformed}, offers)) {
    if (each.asked.id.kind != Kind::numerics) continue;
    if (each.full_id == words.id || each.asked.id.text() == words.id)
      return shrink_found(words, each, worker);
    ids.push_back(each.full_id);
  }
  throw RunError(Outcome::usage,
                 "no numerics case '" + words.id + "' of " + words.provider + did_you_mean(words.id, ids));
}

Outcome replay_file(const ReplayArguments& words) {
  const std::string provider = located_provider(words.provider);
  if (!std::filesystem::exists(words.file))
    throw RunError(Outcome::usage, words.file.string() + ": no such file");
  const Replay replay = read_replay(words.file);
  ProviderWorker worker(provider, context_of(words));
  size_t judged = 0, failed = 0;
  for (const Offer& offer : worker.offers()) {
    if (offer.op != replay.input.op || offer.family() != replay.input.scheme->family() ||
        !offer.takes(replay.input.activation))
      continue;
    if (!words.variant.empty() && words.variant != offer.variant) continue;
    const Verdict verdict = worker.ask(replay, offer, words.timeout_s);
    if (verdict.status == Status::internal) throw std::runtime_error(verdict.reason);
    judged += verdict.status != Status::not_supported;
    failed += is_failure(verdict.status);
    std::cout << offer.provider << "_" << offer.variant << ": " << said(verdict) << "\n";
  }
  if (judged == 0) {
    std::cerr << "qcts: " << words.provider << " has no kernel for this case\n";
    return Outcome::nothing_proved;
  }
  return failed == 0 ? Outcome::conformant : Outcome::failed;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ReplayArguments>();
  CLI::App* shrinking = app.add_subcommand(
      "shrink", "reduce a failing numerics case to the smallest input that still fails and save it");
  shrinking->add_option("ID", words->id, "a case id, or a full id")->required();
  shrinking->add_option("-o,--output", words->file, "the file to write")->default_val("replay.json");
  shrinking->add_option("--plan", words->plan, "the plan of the case")->capture_default_str();
  shrinking->add_option("--budget", words->budget, "maximum number of inputs to try")
      ->check(not_negative())
      ->capture_default_str();
  CLI::App* replaying =
      app.add_subcommand("replay", "run a provider on the input in a file; exit code 1 if it fails");
  replaying->add_option("FILE", words->file, "a file from `qcts shrink`")->required();
  replaying->add_option("--variant", words->variant, "only this variant");
  for (CLI::App* command : {shrinking, replaying}) {
    command->add_option("--provider", words->provider, "builtin, or the path of a shared library")
        ->capture_default_str();
    command->add_option("--threads", words->threads, "threads of each kernel call")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command->add_option("--timeout", words->timeout_s, "timeout of a case in seconds")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
  }
  shrinking->add_option("--seed", words->seed, "mixed into synthetic inputs")
      ->check(not_negative())
      ->capture_default_str();
  shrinking->callback([words, &exit_code] { exit_code = exit_code_of([&] { return shrink_case(*words); }); });
  replaying->callback([words, &exit_code] { exit_code = exit_code_of([&] { return replay_file(*words); }); });
}

}  // namespace qcts::cli
