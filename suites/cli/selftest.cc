// SPDX-License-Identifier: BSD-3-Clause
// qcts selftest: measures the judge's strength on providers, files and parts of itself with planted faults,
// and its false alarms on correct providers.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/selftest.h"
#include "suites/run/progress.h"
#include "suites/selftest/alarms.h"
#include "suites/selftest/cheats/judge_cheats.h"
#include "suites/selftest/exam.h"
#include "suites/selftest/explain.h"
#include "suites/selftest/kill.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

struct SelftestArguments {
  std::vector<std::string> kinds;
  selftest::KillRequest request;
  bool json = false;
  std::filesystem::path out;
  bool cover = false;
  // The stream for text; it discards everything with --json.
  std::ostream& text() const { return json ? nowhere() : std::cout; }

  static std::ostream& nowhere() {
    static std::ostream none(nullptr);
    return none;
  }
};

// Kills mean nothing unless the real parts of the judge answer every question right.
bool unmutated_parts_hold(std::ostream& out) {
  bool hold = true;
  for (const MutantKind kind : selftest::kExaminedKinds)
    for (const selftest::ExamResult& result : selftest::examine(kind))
      if (!result.held) {
        out << "  the judge's own part fails " << result.question << ": " << result.what << "\n";
        hold = false;
      }
  return hold;
}

// Kills mean nothing unless a correct provider passes all the cases that its mutants are judged on. kill()
// itself sees to that for kind cuda.
bool the_right_one_passes(const selftest::KillRequest& request, std::ostream& out) {
  bool passes = true;
  const std::vector<MutantKind> kinds = selftest::mutant_kinds(request);
  for (const auto kind : {MutantKind::kernel, MutantKind::format}) {
    if (!kinds.empty() && std::ranges::find(kinds, kind) == kinds.end()) continue;
    const selftest::KillRow row = selftest::kill_together(request, "", kind);
    for (const selftest::Killer& killer : row.killers)
      out << "  without a fault: " << killer.status << " " << killer.case_id << ": " << killer.reason << "\n";
    passes = passes && !row.killed();
  }
  return passes;
}

// Mutants that the authors of the cases had not seen.
void tell_held_back(const std::vector<selftest::KillRow>& rows, std::ostream& out) {
  size_t held = 0, killed = 0;
  for (const selftest::KillRow& row : rows) {
    held += row.mutant->held;
    killed += row.mutant->held && row.killed();
  }
  if (held == 0) return;
  out << "held back until the cases were done: " << killed << " of " << held << " killed\n";
  for (const selftest::KillRow& row : rows)
    if (!row.mutant->found.empty())
      out << "  gap found by " << row.mutant->id << ": " << row.mutant->found << "\n";
}

Outcome run_kill(const SelftestArguments& words) {
  if (!selftest::selects_any(words.request))
    throw RunError(Outcome::nothing_proved, "no mutant was selected");
  std::ostream& text = words.text();
  Progress progress(Progress::on_standard_error(!words.json));
  progress.say("judging kernels, files and parts of the judge without a fault");
  const bool own = unmutated_parts_hold(text) && the_right_one_passes(words.request, text);
  progress.say("judging the mutants");
  const std::vector<selftest::KillRow> rows =
      selftest::kill(words.request, [&](const selftest::KillRow& row) {
        progress.clear();
        text << selftest::matrix_text({row}) << std::flush;
      });
  progress.clear();
  size_t killed = 0, equivalent = 0;
  for (const selftest::KillRow& row : rows) {
    equivalent += !row.mutant->proof.empty();
    killed += row.killed() && row.mutant->proof.empty();
  }
  text << killed << " of " << rows.size() - equivalent << " mutants killed";
  if (equivalent != 0) text << ", " << equivalent << " equivalent";
  text << "\n";
  tell_held_back(rows, text);
  for (const selftest::KillRow* row : selftest::survivors(rows))
    text << "  survived: " << row->mutant->id << ": " << row->mutant->what
         << (row->problem.empty() ? "" : " (" + row->problem + ")") << "\n";
  const std::vector<std::string> cover =
      words.cover ? selftest::greedy_cover(rows) : std::vector<std::string>();
  for (const std::string& id : cover) text << "    \"" << id << "\",\n";
  nlohmann::ordered_json body = selftest::to_json(words.request, rows);
  if (words.cover) body["cover"] = cover;
  if (words.json) print_json("selftest_kill", body);
  if (!words.out.empty()) write_document(words.out, "selftest_kill", body, words.json);
  return own && selftest::survivors(rows).empty() ? Outcome::conformant : Outcome::failed;
}

void print_alarms(const selftest::AlarmRequest& request, const selftest::AlarmRow& row) {
  std::printf("  %-20s %8llu judged, %llu passed, %zu alarms over seeds %llu to %llu\n",
              row.implementation.c_str(), static_cast<unsigned long long>(row.judged),
              static_cast<unsigned long long>(row.passed), row.alarms.size(),
              static_cast<unsigned long long>(request.first), static_cast<unsigned long long>(request.seeds));
  for (size_t i = 0; i < row.alarms.size() && i < 5; ++i)
    std::cout << "    " << status_name(row.alarms[i].status) << " " << row.alarms[i].full_id() << ": "
              << printable(row.alarms[i].reason) << "\n      rerun: " << row.alarms[i].rerun << "\n";
}

Json row_json(const selftest::AlarmRow& row) {
  Json alarms = Json::array();
  for (const Verdict& verdict : row.alarms) alarms.push_back(to_json(verdict));
  return {{"implementation", row.implementation},
          {"judged", row.judged},
          {"passed", row.passed},
          {"alarms", alarms}};
}

Outcome run_alarms(const selftest::AlarmRequest& request, bool json) {
  uint64_t judged = 0, alarmed = 0;
  Json rows = Json::array();
  for (const selftest::AlarmRow& row : selftest::alarms(request, [](uint64_t) {})) {
    if (!json) print_alarms(request, row);
    rows.push_back(row_json(row));
    judged += row.judged;
    alarmed += row.alarms.size();
  }
  if (json)
    print_json("selftest_alarms", {{"judged", judged}, {"alarms", alarmed}, {"rows", rows}});
  else
    std::cout << alarmed << " false alarms in " << judged << " verdicts\n";
  if (judged == 0) return Outcome::nothing_proved;
  return alarmed == 0 ? Outcome::conformant : Outcome::failed;
}

Outcome run_cheats(const std::vector<std::string>& globs, bool json) {
  if (!cheats::selects_any(globs)) throw RunError(Outcome::nothing_proved, "no cheat was selected");
  Progress progress(Progress::on_standard_error(!json));
  progress.say("judging cheats and their honest twins");
  const std::vector<cheats::CheatRow> rows = cheats::judge_cheats(globs, [&](const cheats::CheatRow& row) {
    progress.clear();
    if (!json) std::cout << cheats::text_of(row) << std::flush;
  });
  progress.clear();
  if (json)
    print_json("selftest_cheats", cheats::to_json(rows));
  else
    std::cout << cheats::score_text(rows) << "\n";
  return cheats::all_hold(rows) ? Outcome::conformant : Outcome::failed;
}

std::string said_of(const selftest::Explained& explained) {
  if (!explained.killed) return explained.reason;
  return explained.hypothesis.empty() ? "(none)" : explained.hypothesis;
}

Outcome run_explain(bool json) {
  size_t faults = 0, faults_named = 0, pairs = 0, pairs_wrong = 0;
  Json rows = Json::array();
  for (const selftest::Explanation& asked : selftest::explanation_list()) {
    const selftest::Explained explained = selftest::explain(asked);
    if (!json)
      std::printf("  %-5s %-44s %s\n", explained.right() ? "right" : "WRONG",
                  std::string(asked.faults).c_str(), printable(said_of(explained)).c_str());
    rows.push_back({{"faults", asked.faults},
                    {"case", asked.case_id},
                    {"right", explained.right()},
                    {"hypothesis", explained.hypothesis},
                    {"reason", explained.reason}});
    (asked.is_pair() ? pairs : faults) += 1;
    faults_named += !asked.is_pair() && explained.right();
    pairs_wrong += asked.is_pair() && !explained.right();
  }
  if (json)
    print_json("selftest_explain", {{"faults", faults},
                                    {"faults_named", faults_named},
                                    {"pairs", pairs},
                                    {"pairs_wrong", pairs_wrong},
                                    {"rows", rows}});
  else
    std::printf("%zu of %zu faults named; %zu of %zu pairs explained wrongly\n", faults_named, faults,
                pairs_wrong, pairs);
  return faults_named == faults && pairs_wrong == 0 ? Outcome::conformant : Outcome::failed;
}

void add_kill(CLI::App& selftest, int& exit_code) {
  auto words = std::make_shared<SelftestArguments>();
  CLI::App* command = selftest.add_subcommand(
      "kill", "judge every mutant; exit code 1 if one that is not equivalent survives");
  selftest::KillRequest& request = words->request;
  command->add_option("--plan", request.plan, "a plan in suites/plans, or the path to one")
      ->capture_default_str();
  command->add_option("--mutant", request.mutants, "a glob over mutant ids")->allow_extra_args(false);
  command
      ->add_option(
          "--kind", words->kinds,
          "mutants of kernels, formats or a part of the judge; default: the kinds that the plan covers")
      ->check(CLI::IsMember({"kernel", "cuda", "format", "comparator", "runner", "merge", "bench"}))
      ->allow_extra_args(false);
  command->add_option("--case", request.cases, "a glob over case ids")->allow_extra_args(false);
  command->add_option("--set", request.set, "open: known to the authors of the cases; held: not")
      ->check(CLI::IsMember({"all", "open", "held"}))
      ->capture_default_str();
  CLI::Option* all =
      command->add_flag("--all", request.every_case, "judge every case, not only up to the first kill");
  command->add_option("--jobs", request.jobs, "workers at a time with --all")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--seed", request.seed, "mixed into synthetic inputs")
      ->check(not_negative())
      ->capture_default_str();
  command->add_flag("--json", words->json, "print JSON");
  command->add_option("--out", words->out, "also write the JSON to this file");
  command->add_flag("--cover", words->cover, "with --all: print the cases of a quick plan")->needs(all);
  command->callback([words, &exit_code] {
    for (const std::string& name : words->kinds)
      words->request.kinds.push_back(find_mutant_kind(name).value());
    exit_code = exit_code_of([&] { return run_kill(*words); });
  });
}

void add_alarms(CLI::App& selftest, int& exit_code) {
  auto request = std::make_shared<selftest::AlarmRequest>();
  CLI::App* command =
      selftest.add_subcommand("alarms", "judge correct providers on many seeds; exit code 1 if a case fails");
  command->add_option("--first", request->first, "the first seed")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--seeds", request->seeds, "the last seed")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--plan", request->plan, "a plan in suites/plans, or the path to one")
      ->capture_default_str();
  command->add_option("--provider", request->providers, "builtin, reference, or the path of a shared library")
      ->allow_extra_args(false);
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback(
      [request, json, &exit_code] { exit_code = exit_code_of([&] { return run_alarms(*request, *json); }); });
}

void add_explain(CLI::App& selftest, int& exit_code) {
  CLI::App* command = selftest.add_subcommand(
      "explain",
      "plant one or two faults and check that failures name them; exit code 1 if one is explained wrongly");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json, &exit_code] { exit_code = exit_code_of([&] { return run_explain(*json); }); });
}

void add_cheats(CLI::App& selftest, int& exit_code) {
  CLI::App* command = selftest.add_subcommand("cheats",
                                              "judge every published way to cheat, and an honest twin of "
                                              "each; exit code 1 if the judge does not name a "
                                              "cheat or accuses a twin");
  auto globs = std::make_shared<std::vector<std::string>>();
  command->add_option("--filter", *globs, "a glob over the ids of cheats")->allow_extra_args(false);
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback(
      [globs, json, &exit_code] { exit_code = exit_code_of([&] { return run_cheats(*globs, *json); }); });
}

}  // namespace

void add_selftest(CLI::App& app, int& exit_code) {
  CLI::App* selftest = app.add_subcommand("selftest", "test the judge itself");
  selftest->require_subcommand(1);
  add_kill(*selftest, exit_code);
  add_alarms(*selftest, exit_code);
  add_explain(*selftest, exit_code);
  add_cheats(*selftest, exit_code);
}

}  // namespace qcts::cli
