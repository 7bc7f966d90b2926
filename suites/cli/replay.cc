// SPDX-License-Identifier: BSD-3-Clause
// qcts shrink ID: makes a failing case small enough to send, as long as its diagnosis stays; where a smaller
// input fails differently, it keeps that too. qcts replay FILE: runs it on a kernel again.
#include <fstream>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "fixtures/golden.h"
#include "reports/failure_title.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/cli/command_line.h"
#include "suites/cli/selftest.h"
#include "suites/judge/numerics/beside.h"
#include "suites/judge/replay.h"
#include "suites/run/workers/provider_worker.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kTargetBytes = 4096;

struct ReplayArguments {
  std::string id, provider = "builtin", plan = "default", variant;
  std::filesystem::path file;
  uint64_t seed = 0, budget = 4000;
  uint32_t threads = 1;
  double timeout_s = 60;
  bool json = false;
};

JudgeSettings settings_of(const ReplayArguments& words) {
  JudgeSettings settings;
  settings.program = program_word();
  settings.threads = words.threads;
  settings.seed = words.seed;
  return settings;
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

// A shrunk input in its file, with what the kernel said about it.
struct Shrunk {
  std::filesystem::path file;
  Replay replay;
  Verdict verdict;
  size_t bytes = 0;
};

Shrunk written(const std::filesystem::path& file, const Replay& replay, const Verdict& verdict) {
  const std::string text = replay_text(replay);
  write_replay(file, text);
  return {file, replay, verdict, text.size()};
}

// "replay.json" -> "replay.smallest.json"
std::filesystem::path smallest_file(std::filesystem::path file) {
  const std::string ending = file.extension().string();
  return file.replace_extension(".smallest" + ending);
}

std::string shape_text(const KernelInput& input) {
  return "m " + std::to_string(input.m) + " n " + std::to_string(input.weight.n) + " k " +
         std::to_string(input.weight.k);
}

std::string replay_line(const ReplayArguments& words, const Shrunk& shrunk) {
  return program_word() + " replay " + shell_word(shrunk.file.string()) + " --provider " +
         shell_word(words.provider);
}

void print_shrunk(const ReplayArguments& words, const KernelInput& was, const Shrunk& shrunk, Printout& out) {
  out.text("wrote " + shrunk.file.string() + ": " + shape_text(was) + " -> " +
           shape_text(shrunk.replay.input) + ", " + with_commas(static_cast<double>(shrunk.bytes)) +
           " bytes" + (shrunk.bytes > kTargetBytes ? " (more than 4 KiB)" : ""));
  out.text(shrunk.verdict.status == Status::fail ? shrunk.verdict.reason : said(shrunk.verdict), 2);
  out.command(replay_line(words, shrunk), 2);
}

Json shrunk_json(const ReplayArguments& words, const Shrunk& shrunk) {
  const KernelInput& input = shrunk.replay.input;
  return {{"file", shrunk.file.string()},
          {"bytes", shrunk.bytes},
          {"m", input.m},
          {"n", input.weight.n},
          {"k", input.weight.k},
          {"status", status_name(shrunk.verdict.status)},
          {"hypothesis", hypothesis_of(shrunk.verdict.reason)},
          {"reason", shrunk.verdict.reason},
          {"rerun", replay_line(words, shrunk)}};
}

Outcome shrink_found(const ReplayArguments& words, const OfferedCase& found, ProviderWorker& worker) {
  const Offer& offer = *found.offer;
  const TestVector test_vector = make_test_vector(found.asked, words.seed);
  Replay start{test_vector.input, test_vector.exact_bits, found.asked.id,
               offer.provider + "_" + offer.variant};
  Verdict first = worker.ask(start, offer, words.timeout_s);
  // A case may fail in a problem that is made from its data and has no id.
  for (ProblemBeside& problem : problems_beside(found.asked, test_vector.input)) {
    if (is_failure(first.status)) break;
    start.input = std::move(problem.input);
    start.exact_bits = 0;
    first = worker.ask(start, offer, words.timeout_s);
  }
  if (!is_failure(first.status)) {
    std::cerr << "qcts: " << found.full_id << " does not fail here\n";
    return Outcome::nothing_proved;
  }
  const std::string hypothesis = hypothesis_of(first.reason);
  const Shrinking shrinking = shrink_both(
      start, first, [&](const Replay& replay) { return worker.ask(replay, offer, words.timeout_s); },
      words.budget);
  std::vector<Shrunk> kept = {written(words.file, shrinking.same.replay, shrinking.same.verdict)};
  if (shrinking.smaller)
    kept.push_back(written(smallest_file(words.file), shrinking.smaller->replay, shrinking.smaller->verdict));
  if (words.json) {
    Json files = Json::array();
    for (const Shrunk& shrunk : kept) files.push_back(shrunk_json(words, shrunk));
    print_json("shrink", {{"case", found.full_id}, {"tries", shrinking.tried}, {"files", files}});
    return Outcome::conformant;
  }
  Printout out(screen_of(STDOUT_FILENO));
  out.text(found.full_id + ": " + std::to_string(shrinking.tried) + " tries");
  print_shrunk(words, start.input, kept[0], out);
  if (kept.size() > 1) {
    out.text("a smaller input still fails, but no longer by \"" + hypothesis + "\": both are kept");
    print_shrunk(words, start.input, kept[1], out);
  }
  std::cout << out.str();
  return Outcome::conformant;
}

Outcome shrink_case(const ReplayArguments& words) {
  const std::string provider = located_provider(words.provider);
  const qcts::Plan plan = named_plan(words.plan);
  ProviderWorker worker(provider, settings_of(words));
  OfferTable offers;
  offers.add(worker.offers());
  const Fixtures fixtures = load_fixtures(fixtures_folder());
  std::vector<std::string> ids;
  for (const OfferedCase& each : expand_offered(plan, {fixtures.goldens, fixtures.malformed}, offers,
                                                worker.support(words.timeout_s))) {
    if (each.asked.id.kind != Kind::numerics) continue;
    if (each.full_id == words.id || each.asked.id.text() == words.id)
      return shrink_found(words, each, worker);
    ids.push_back(each.full_id);
  }
  throw UsageError("no numerics case '" + words.id + "' of " + words.provider + did_you_mean(words.id, ids));
}

Outcome replay_file(const ReplayArguments& words) {
  const std::string provider = located_provider(words.provider);
  if (!std::filesystem::exists(words.file)) throw UsageError(words.file.string() + ": no such file");
  const Replay replay = read_replay(words.file);
  ProviderWorker worker(provider, settings_of(words));
  size_t judged = 0, failed = 0;
  Json kernels = Json::array();
  for (const Offer& offer : worker.offers()) {
    if (offer.op != replay.input.op || offer.family() != replay.input.scheme->family() ||
        !offer.takes(replay.input.activation) || !offer.reads(replay.input.layout))
      continue;
    if (!words.variant.empty() && words.variant != offer.variant) continue;
    const Verdict verdict = worker.ask(replay, offer, words.timeout_s);
    if (verdict.status == Status::internal) throw std::runtime_error(verdict.reason);
    judged += verdict.status != Status::not_supported;
    failed += is_failure(verdict.status);
    const std::string name = offer.provider + "_" + offer.variant;
    kernels.push_back(
        {{"implementation", name}, {"status", status_name(verdict.status)}, {"reason", verdict.reason}});
    if (words.json) continue;
    Printout out(screen_of(STDOUT_FILENO));
    out.text(name + ": " + said(verdict));
    std::cout << out.str() << std::flush;
  }
  if (words.json) print_json("replay", {{"file", words.file.string()}, {"kernels", kernels}});
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
  shrinking->add_option("-o,--out", words->file, "the file to write")->default_val("replay.json");
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
    command->add_flag("--json", words->json, "print JSON");
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
