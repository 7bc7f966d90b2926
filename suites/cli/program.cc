// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/program.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "kernels/machine/machine.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/printable.h"
#include "suites/cli/command_help.h"
#include "suites/cli/commands.h"
#include "suites/cli/help_format.h"
#include "suites/cli/selftest.h"

namespace qcts::cli {
namespace {

constexpr int kWrongUsage = 2;

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Returns a suggestion that CLI11's parse error lacks: the nearest name to an unknown subcommand or option;
// "" if all are known.
std::string wrong_word(const CLI::App& app, const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size() && words[at].starts_with("-")) ++at;
  if (at == words.size()) at = 0;
  const CLI::App* command = &app;
  for (; at < words.size() && !words[at].starts_with("-"); ++at) {
    if (command->get_subcommands([](const CLI::App*) { return true; }).empty()) break;
    const auto named =
        command->get_subcommands([&](const CLI::App* c) { return c->get_name() == words[at]; });
    if (named.empty())
      return "no command '" + words[at] + "'" + did_you_mean(words[at], command_names(*command));
    command = named.front();
  }
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string word = words[at].substr(0, words[at].find('='));
    if (!word.starts_with("--") || command->get_option_no_throw(word)) continue;
    return "no option '" + word + "'" + did_you_mean(word, option_names(*command));
  }
  return "";
}

int wrong_usage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  std::string text = wrong_word(app, words);
  if (text.empty()) text = error.what();
  for (char& c : text)
    if (c == '\n') c = ' ';
  std::cerr << "qcts: " << printable(text) << "\n";
  return kWrongUsage;
}

// Returns true if a word after `--allow NAME` is one more name, "module.name". A word that names a file, or
// ends as one does, is an argument of the command.
bool is_another_global(const std::string& word) {
  static const std::regex kName(R"([A-Za-z_]\w*(\.[A-Za-z_]\w*)+)"),
      kFile(R"(.*\.(pt|pth|bin|safetensors|json|ckpt|zip|ptl))");
  return std::regex_match(word, kName) && !std::regex_match(word, kFile) && !std::filesystem::exists(word);
}

// Repeats --allow before each further name: `--allow A B FILE` is `--allow A --allow B FILE`.
std::vector<std::string> with_each_allowed(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  size_t names = 0;  // of the --allow before this word; 0: none
  for (const std::string& word : words) {
    if (names > 1 && is_another_global(word)) out.emplace_back("--allow");
    const bool goes_on = word == "--allow" || names == 1 || (names > 1 && is_another_global(word));
    names = word == "--allow" ? 1 : goes_on ? names + 1 : 0;
    out.push_back(word);
  }
  return out;
}

}  // namespace

int run_program(int argc, char** argv, const std::string& commit) {
  CLI::App app("qcts: conformance and benchmarks for quantized checkpoints and kernels", "qcts");
  app.formatter(std::make_shared<HelpFormat>());
  app.set_version_flag("--version", "qcts " QCTS_VERSION " (" + commit + ")");
  app.require_subcommand(1);
  int exit_code = 0;
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  add_run(app, exit_code, words, commit);
  add_merge(app, exit_code, words);
  add_statement(app, exit_code);
  add_verify(app, exit_code);
  add_compare(app, exit_code);
  add_confirm(app, exit_code);
  add_history(app, exit_code);
  add_export(app, exit_code);
  add_report(app, exit_code);
  add_list(app, exit_code);
  add_schemes(app, exit_code);
  add_vectors(app, exit_code);
  add_inspect(app, exit_code);
  add_diff(app, exit_code);
  add_whence(app, exit_code);
  add_check(app, exit_code);
  add_resave(app, exit_code);
  add_convert(app, exit_code);
  add_dequantize(app, exit_code);
  add_quantize(app, exit_code);
  add_block(app, exit_code);
  add_stopwatch(app, exit_code);
  add_speed(app, exit_code);
  add_targets(app, exit_code);
  add_worker(app, exit_code);
  add_provider_process(app, exit_code);
  add_selftest(app, exit_code);
  add_replay(app, exit_code);
  add_completion(app, exit_code);
  add_groups_and_examples(app);
  if (argc <= 1) {
    std::cerr << app.help();
    return kWrongUsage;
  }
  // Checked before any command starts: an unknown way of reading weights is a usage error.
  app.parse_complete_callback([] {
    try {
      machine();
    } catch (const std::runtime_error& error) {
      throw CLI::ValidationError("environment", error.what());
    }
  });
  try {
    std::vector<std::string> parsed = with_each_allowed(words);
    std::ranges::reverse(parsed);  // as CLI11 takes them
    app.parse(std::move(parsed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return wrong_usage(app, error, words);
  }
  return exit_code;
}

}  // namespace qcts::cli
