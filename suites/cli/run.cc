// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string>

#include "reports/waivers.h"
#include "suites/base/paths.h"
#include "suites/base/secret_seed.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/cli/identify.h"
#include "suites/record/run_record.h"
#include "suites/run/device_choice.h"
#include "suites/run/environment/shard_environment.h"
#include "suites/run/run.h"

namespace qcts::cli {
namespace {

struct RunArguments {
  RunRequest options;
  std::string shard, gate, history, isolation = "required", device = "cpu";
  uint64_t memory_limit_mib = kDefaultMemoryLimitBytes >> 20;
  bool no_progress = false, last_failed = false, identify = false;
};

// Takes the shard from --shard, otherwise from the environment.
void choose_shard(const std::string& given, Selection& selection) {
  if (!given.empty()) return parse_shard(given, selection);
  const std::optional<EnvironmentShard> asked = shard_from_environment();
  if (!asked) return;
  selection.shard = asked->shard;
  selection.shards = asked->shards;
  if (!asked->status_file.empty()) std::ofstream(asked->status_file, std::ios::app);
  std::cerr << "qcts: shard " << asked->shard << "/" << asked->shards << " (" << asked->engine << ")\n";
}

// Selects the cases that failed in the record of the report folder, and their providers if none is named.
void choose_last_failed(RunRequest& options) {
  const std::filesystem::path file = record_of(options.out);
  if (!has_run_head(file)) throw UsageError("--last-failed: " + options.out.string() + " has no run");
  RunRecord record;
  try {
    record = read_run_record(file);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  std::vector<Waiver> waivers = load_waivers(repository_root() / "suites" / "waivers.json", today_utc());
  std::set<std::string> failed;
  for (Verdict& verdict : record.verdicts) {
    apply_waivers(waivers, verdict);
    if (!blocks_conformance(verdict, options.gate_latency)) continue;
    options.selection.filters.push_back(verdict.full_id());
    failed.insert(verdict.provider);
  }
  if (failed.empty()) throw RunError(Outcome::nothing_proved, "no case failed in " + file.string());
  if (!options.providers.empty()) return;
  for (const auto& provider : record.head.providers) {
    const std::string name = provider.value("name", ""), library = provider.value("library", "");
    if (failed.contains(name)) options.providers.push_back(library.empty() ? name : library);
  }
}

Outcome identify_provider(const RunArguments& words, const CLI::App& command) {
  constexpr std::string_view kTaken[] = {"identify", "provider", "scheme", "variant",
                                         "timeout",  "threads",  "json",   "no-progress"};
  const RunRequest& options = words.options;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      if (option->count() > 0 && std::ranges::find(kTaken, std::string_view(name)) == std::end(kTaken))
        throw UsageError("--identify excludes --" + name);
  if (options.providers.size() != 1) throw UsageError("--identify needs one --provider");
  return identify({options.providers.front(), options.selection.schemes, options.selection.variant,
                   options.case_timeout_s.value_or(60), options.threads, options.json});
}

Outcome run_command(RunArguments& words) {
  RunRequest& options = words.options;
  try {
    choose_shard(words.shard, options.selection);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  options.gate_latency = words.gate == "latency";
  options.isolation = words.isolation == "off"    ? Isolation::off
                      : words.isolation == "best" ? Isolation::best
                                                  : Isolation::required;
  options.memory_limit_bytes = words.memory_limit_mib << 20;
  options.progress = !words.no_progress;
  if (words.last_failed) choose_last_failed(options);
  options.device = device_from_word(words.device);
  if (options.device) options.selection = selection_for_device(options.selection, options.plan);
  if (!options.seed_file.empty()) {
    const SecretSeed secret = read_secret_seed(options.seed_file);
    options.seed = secret.seed;
    options.seed_sha256 = secret.sha256;
  }
  if (options.budget_s && options.selection.shards > 1)
    throw UsageError("--budget needs a whole run: the parts of an interrupted one cannot be merged");
  if (words.history.empty() || options.list) return run(options);
  if (options.selection.shards > 1)
    throw UsageError("--history needs a whole run: give it to qcts merge, which joins the shards");
  check_history(words.history);
  const Outcome outcome = run(options);
  add_to_history(words.history, options.out.string());
  return outcome;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code, const std::vector<std::string>& arguments,
             const std::string& commit) {
  auto words = std::make_shared<RunArguments>();
  RunRequest& options = words->options;
  options.arguments = arguments;
  options.commit = commit;
  CLI::App* command = app.add_subcommand(
      "run", "judge providers and files; write report.html, report.json, junit.xml and run.jsonl.gz");
  command->add_option("--plan", options.plan, "a plan in suites/plans, or the path to one")
      ->capture_default_str();
  command->add_option("--model", options.model,
                      "a transformers config.json: also judge linear at the sizes of that model's layers, "
                      "with 1, 8, 33 and 512 rows");
  command
      ->add_option("--filter", options.selection.filters,
                   "an exact case id, or a glob of * and ? that may match anywhere in it; if there are "
                   "several, one has to match")
      ->allow_extra_args(false);
  command->add_option("--exclude", options.selection.excludes, "like --filter: cases to leave out")
      ->allow_extra_args(false);
  command->add_flag("--last-failed", words->last_failed,
                    "only the cases that failed in the report folder's record, for the same providers");
  command
      ->add_option("--kind", options.selection.kinds,
                   "round_trip, assign, reject, size, numerics, determinism, latency")
      ->allow_extra_args(false);
  command->add_option("--scheme", options.selection.schemes, "a scheme in `qcts schemes`")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--provider", options.providers,
          "qcts (files), builtin, reference, a plug-in's name, or the path of a shared library or program")
      ->allow_extra_args(false);
  command
      ->add_option("--peer", options.peers,
                   "like --provider, but its latency is reported and never gates; without --provider, "
                   "plug-ins that are found are treated the same way")
      ->allow_extra_args(false);
  command->add_option("--device", words->device, "where kernels run: cpu, cuda, or cuda:1 for the second GPU")
      ->capture_default_str();
  command->add_option("--variant", options.selection.variant, "only this variant; an error if it cannot run");
  command->add_option("--fixtures", options.fixtures, "an additional folder with a manifest.json")
      ->allow_extra_args(false);
  command->add_option("--out", options.out, "folder for the reports")->capture_default_str();
  command
      ->add_option("--gate", words->gate,
                   "also fail the run if latency misses its targets or decoding is slower than dense")
      ->check(CLI::IsMember({"latency"}));
  command->add_option(
      "--shard", words->shard,
      "i/n: every n-th case of the sorted selection, starting with the i-th; default: from the "
      "environment of Slurm, Kubernetes, GitLab, Bazel or GoogleTest");
  CLI::Option* resume = command->add_flag("--resume", options.resume,
                                          "continue the run in the report folder, if it is the same");
  command
      ->add_flag("--restart", options.restart,
                 "set aside an unfinished run in the report folder, as unfinished.jsonl, and start over")
      ->excludes(resume);
  CLI::Option* fail_fast =
      command
          ->add_option("--fail-fast", options.fail_fast,
                       "stop after N failures (without N: 1); the record stays unfinished, for --resume")
          ->expected(0, 1)
          ->default_str("1")
          ->check(CLI::PositiveNumber);
  command->add_option("--timeout", options.case_timeout_s, "seconds per case, instead of the plan's")
      ->check(CLI::Range(1, 86400));
  command
      ->add_option("--budget", options.budget_s,
                   "a time such as 90s, 20m or 2h: ask the most varied questions first, and report what was "
                   "judged by then and what was left out")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                        CLI::AsNumberWithUnit::UNIT_REQUIRED, "DURATION"))
      ->excludes(fail_fast);
  command->add_flag("--keep-going", options.keep_going,
                    "go on with a provider that timed out three times in a row");
  command->add_option("--repeat", options.repeat, "judge each case N times; a case fails if it fails once")
      ->check(CLI::Range(1, 10000));
  command->add_option("--durations", options.durations, "name the N slowest cases")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--memory-limit", words->memory_limit_mib,
                   "MiB that a worker may use on top of loading its provider (0: no limit)")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("--isolation", words->isolation,
                   "required: fail a whole run if a provider could change its verdicts; best: judge it "
                   "anyway; off: judge without limits, for gdb, perf and valgrind")
      ->check(CLI::IsMember({"required", "best", "off"}))
      ->capture_default_str();
  CLI::Option* seed = command->add_option("--seed", options.seed, "mixed into synthetic inputs")
                          ->check(not_negative())
                          ->capture_default_str();
  command
      ->add_option(
          "--seed-file", options.seed_file,
          "a file whose bytes are the seed, such as 32 random ones; the record has only their SHA-256")
      ->excludes(seed);
  command->add_option("--threads", options.threads, "threads of each kernel call")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--jobs", options.jobs,
                   "workers at a time (0: one per processor, at most 4, fewer if a container allows less)")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--history", words->history,
                      "append the run to this SQLite file (qcts history, qcts compare --history)");
  command->add_option("--commit", options.commit, "the suite's commit, for the report")
      ->capture_default_str();
  command->add_flag("--json", options.json, "print report.json instead of the summary")->excludes(fail_fast);
  add_junit_option(*command, options.junit);
  command->add_flag("--no-progress", words->no_progress, "show no progress");
  command->add_flag("--list", options.list, "print the selected ids without judging");
  command->add_flag(
      "--identify", words->identify,
      "judge nothing; say which sibling scheme or option of the ledger each kernel computes, with its share "
      "of equal codes; takes --provider, --scheme, --variant, "
      "--timeout, --threads and --json; exit code 1 if a kernel computes something other than what was "
      "asked");
  last_option_wins(*command);
  command->callback([words, command, &exit_code] {
    exit_code = exit_code_of([&] {
      if (words->identify) return identify_provider(*words, *command);
      return run_command(*words);
    });
  });
}

}  // namespace qcts::cli
