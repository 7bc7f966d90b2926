// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <memory>

#include "fixtures/golden.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/run/device_choice.h"
#include "suites/run/run.h"

namespace qcts::cli {
namespace {

struct ListArguments {
  RunRequest request;
  std::string device = "cpu";
  bool names = false, plan_given = false;
};

// Selects what a GPU of this architecture would be asked, "sm80" or "sm90", which need not be here.
void choose_architecture(const std::string& word, RunRequest& request) {
  const bool has_sm90a = word == "sm90";
  if (!has_sm90a && word != "sm80")
    throw UsageError("no device '" + word + "': cpu, cuda, cuda:1, sm80 and sm90 are known");
  request.selection = selection_for_device(request.selection, request.plan);
  if (!has_sm90a) request.selection.excludes.emplace_back("*_sm90a");
  if (!request.providers.empty()) return;
  const std::optional<std::filesystem::path> own = cuda_plugin();
  if (!own)
    throw RunError(Outcome::nothing_proved, "this build has no kernels for a GPU: QCTS_CUDA=ON needs nvcc");
  request.providers.push_back(own->string());
}

Outcome list_words(ListArguments& words) {
  if (!words.names) {
    words.request.list = true;
    words.request.progress = false;
    if (words.device.starts_with("sm")) {
      choose_architecture(words.device, words.request);
    } else {
      words.request.device = device_from_word(words.device);
      if (words.request.device)
        words.request.selection = selection_for_device(words.request.selection, words.request.plan);
    }
    return run(words.request);
  }
  std::vector<std::filesystem::path> folders = {fixtures_folder()};
  folders.insert(folders.end(), words.request.fixtures.begin(), words.request.fixtures.end());
  const std::vector<std::string> ids =
      mustpass_ids(words.plan_given ? words.request.plan : kCompletePlan, folders);
  if (words.request.json)
    print_json("list", {{"cases", ids}});
  else
    for (const std::string& id : ids) std::cout << id << "\n";
  return ids.empty() ? Outcome::nothing_proved : Outcome::conformant;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ListArguments>();
  RunRequest& request = words->request;
  CLI::App* command = app.add_subcommand("list", "print the case ids that `qcts run` would judge");
  command->add_option("--plan", request.plan, "a plan in suites/plans, or the path to one")
      ->capture_default_str();
  command->add_option("--filter", request.selection.filters, "as for run")->allow_extra_args(false);
  command->add_option("--kind", request.selection.kinds, "as for run")->allow_extra_args(false);
  command->add_option("--scheme", request.selection.schemes, "as for run")->allow_extra_args(false);
  command->add_option("--provider", request.providers, "as for run")->allow_extra_args(false);
  command
      ->add_option("--device", words->device,
                   "as for run; also sm80 or sm90: the cases for a GPU of that architecture, even if this "
                   "machine has none")
      ->capture_default_str();
  command->add_option("--fixtures", request.fixtures, "as for run")->allow_extra_args(false);
  command->add_flag("--json", request.json, "print JSON");
  command->add_flag("--inputs", request.list_inputs,
                    "print the kind of each case's input too, and the values that make it unreachable");
  command->add_flag(
      "--names", words->names,
      "print case ids without implementations and latency: the lines of suites/mustpass/default.txt");
  command->callback([words, command, &exit_code] {
    words->plan_given = command->count("--plan") > 0;
    exit_code = exit_code_of([&] { return list_words(*words); });
  });
}

}  // namespace qcts::cli
