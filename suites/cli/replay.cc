// qcts shrink ID: a failing case made small enough to send. qcts replay FILE: put to a kernel again.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>

#include "fixtures/golden.h"
#include "suites/cli/command_line.h"
#include "suites/base/did_you_mean.h"
#include "suites/cli/selftest.h"
#include "suites/judge/replay.h"
#include "suites/cases/named.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/run/worker.h"
#include "suites/cases/expand.h"

namespace qcts::cli {
namespace {

constexpr size_t kTargetBytes = 4096;

struct ReplayWords {
  std::string id, provider = "builtin", plan = "default", variant;
  std::filesystem::path file;
  uint64_t seed = 0, budget = 4000;
  uint32_t threads = 1;
};

JudgeContext context_of(const ReplayWords& words) {
  JudgeContext context;
  context.program = program_word();
  context.threads = words.threads;
  context.seed = words.seed;
  return context;
}

Outcome shrink_case(const ReplayWords& words) {
  Registry registry;
  add_named_provider(registry, words.provider);
  const Fixtures fixtures = load_fixtures(fixtures_folder());
  std::vector<std::string> ids;
  for (const Case& c : expand(named_plan(words.plan), {fixtures.goldens, fixtures.malformed, &registry})) {
    if (c.kind != Kind::numerics || c.implementation == nullptr) continue;
    ids.push_back(c.full_id());
    if (ids.back() != words.id && c.id != words.id) continue;
    const JudgeContext context = context_of(words);
    const Question question = ask(c, words.seed);
    const Replay start{question.input, question.exact_sums, c.id, c.implementation->name()};
    const auto fails = [&](const Replay& replay) {
      try {
        return judge_replay(replay, *c.implementation, context).status == Status::fail;
      } catch (const std::exception&) {  // an input that can no longer be judged
        return false;
      }
    };
    if (!fails(start)) {
      std::cerr << "qcts: " << ids.back() << " does not fail here\n";
      return Outcome::nothing_proved;
    }
    ShrinkStats stats;
    const Replay smallest = shrink(start, fails, words.budget, &stats);
    const std::string text = replay_text(smallest);
    std::ofstream out(words.file, std::ios::binary);
    out << text;
    if (!out.flush()) throw std::runtime_error(words.file.string() + " cannot be written");
    const KernelInput &was = start.input, &is = smallest.input;
    std::printf("%s: m %lld n %lld k %lld -> m %lld n %lld k %lld, %zu bytes%s, %llu tries\n",
                words.file.c_str(), static_cast<long long>(was.m), static_cast<long long>(was.weight.n),
                static_cast<long long>(was.weight.k), static_cast<long long>(is.m),
                static_cast<long long>(is.weight.n), static_cast<long long>(is.weight.k), text.size(),
                text.size() > kTargetBytes ? " (more than 4 KiB)" : "",
                static_cast<unsigned long long>(stats.tried));
    std::cout << judge_replay(smallest, *c.implementation, context).reason << "\nrerun: " << program_word()
              << " replay " << shell_word(words.file.string()) << " --provider " << shell_word(words.provider)
              << "\n";
    return Outcome::conformant;
  }
  throw RunError(Outcome::usage,
                 "no numerics case '" + words.id + "' of " + words.provider + did_you_mean(words.id, ids));
}

Outcome replay_file(const ReplayWords& words) {
  Registry registry;
  add_named_provider(registry, words.provider);
  if (!std::filesystem::exists(words.file))
    throw RunError(Outcome::usage, words.file.string() + ": no such file");
  const Replay replay = read_replay(words.file);
  size_t judged = 0, failed = 0;
  for (const Implementation* implementation : registry.find(replay.input.op, replay.input.scheme->family())) {
    if (!words.variant.empty() && words.variant != implementation->kernel->variant) continue;
    const Verdict verdict = judge_replay(replay, *implementation, context_of(words));
    judged += verdict.status != Status::not_supported;
    failed += verdict.status == Status::fail;
    std::cout << implementation->name() << ": " << status_name(verdict.status)
              << (verdict.reason.empty() ? "" : ": " + verdict.reason) << "\n";
  }
  if (judged == 0) {
    std::cerr << "qcts: nothing of " << words.provider << " takes it\n";
    return Outcome::nothing_proved;
  }
  return failed == 0 ? Outcome::conformant : Outcome::failed;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ReplayWords>();
  CLI::App* shrinking = app.add_subcommand(
      "shrink", "make a failing numerics case as small as it still fails, and keep it in a file");
  shrinking->add_option("ID", words->id, "a case id, or a full id")->required();
  shrinking->add_option("-o,--output", words->file, "the file")->default_val("replay.json");
  shrinking->add_option("--plan", words->plan, "the plan that has the case")->capture_default_str();
  shrinking->add_option("--budget", words->budget, "most inputs to try")
      ->check(not_negative())
      ->capture_default_str();
  CLI::App* replaying =
      app.add_subcommand("replay", "put the input of a file to a provider again; 1 when it fails");
  replaying->add_option("FILE", words->file, "what `qcts shrink` wrote")->required();
  replaying->add_option("--variant", words->variant, "only this variant");
  for (CLI::App* command : {shrinking, replaying}) {
    command->add_option("--provider", words->provider, "builtin, or the path of a shared library")
        ->capture_default_str();
    command->add_option("--threads", words->threads, "threads of each kernel call")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
  }
  shrinking->add_option("--seed", words->seed, "mixed into synthetic inputs")
      ->check(not_negative())
      ->capture_default_str();
  shrinking->callback([words, &exit_code] { exit_code = exit_code_of([&] { return shrink_case(*words); }); });
  replaying->callback([words, &exit_code] { exit_code = exit_code_of([&] { return replay_file(*words); }); });
}

}  // namespace qcts::cli
