// SPDX-License-Identifier: BSD-3-Clause
// qcts completion bash|zsh: a script that completes commands, options and their values, made from the options
// themselves.
#include <cctype>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"
#include "suites/base/paths.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"

namespace qcts::cli {
namespace {

using Words = std::vector<std::string>;

std::string spaced(const Words& words, const char* between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Values that the declarations do not hold, by the option's name.
std::optional<Words> known_values(const std::string& option) {
  Words words;
  if (option == "--scheme") {
    for (const Scheme* scheme : schemes()) words.emplace_back(scheme->name());
  } else if (option == "--kind") {
    for (int i = 0; i < kPlanKindCount; ++i) words.emplace_back(kind_name(static_cast<Kind>(i)));
  } else if (option == "--plan") {
    words = plan_names();
  } else if (option == "--dialect") {
    for (std::string_view name : dialect_names()) words.emplace_back(name);
  } else if (option == "--as") {
    words.assign(write_dialects().begin(), write_dialects().end());
  } else if (option == "--cpu-pack" || option == "--cpu-pack-b") {
    words = {"avx512", "avx2", "default"};
  } else {
    return std::nullopt;
  }
  return words;
}

// "{cells,cases}" in the type that CLI11 prints for a checked set.
Words checked_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}', open == type.npos ? 0 : open);
  Words words;
  if (open == type.npos || close == type.npos) return words;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    words.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

struct OptionModel {
  Words names;  // "--out", "-o"
  std::string description;
  bool takes_value = false, repeats = false;
  Words values;  // empty: anything, files among it
};

struct CommandModel {
  Words path;  // {"selftest", "kill"}
  std::string description;
  std::vector<OptionModel> options;
  std::vector<CommandModel> commands;
  std::vector<Words> positionals;  // the values of each; empty: files
};

OptionModel option_model(const CLI::Option& option) {
  OptionModel model;
  for (const std::string& name : option.get_lnames()) model.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) model.names.push_back("-" + name);
  model.description = option.get_description();
  model.takes_value = option.get_items_expected_max() > 0;
  model.repeats = option.get_items_expected_max() > 1;
  model.values = checked_values(option);
  for (const std::string& name : model.names)
    if (model.values.empty() && model.takes_value) model.values = known_values(name).value_or(Words());
  return model;
}

CommandModel command_model(const CLI::App& app, Words path) {
  CommandModel model;
  model.path = std::move(path);
  model.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional())
      model.positionals.push_back(checked_values(*option));
    else
      model.options.push_back(option_model(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // for workers, not for users
    Words below = model.path;
    below.push_back(command->get_name());
    model.commands.push_back(command_model(*command, std::move(below)));
  }
  return model;
}

void for_each(const CommandModel& model, const std::function<void(const CommandModel&)>& visit) {
  visit(model);
  for (const CommandModel& command : model.commands) for_each(command, visit);
}

// Lists the words that may follow those of the command itself.
Words words_after(const CommandModel& command) {
  Words words;
  for (const CommandModel& below : command.commands) words.push_back(below.path.back());
  for (const Words& values : command.positionals) words.insert(words.end(), values.begin(), values.end());
  for (const OptionModel& option : command.options)
    words.insert(words.end(), option.names.begin(), option.names.end());
  return words;
}

std::string bash_script(const CommandModel& all) {
  Words paths;
  std::string values, words;
  for_each(all, [&](const CommandModel& command) {
    const std::string path = spaced(command.path);
    if (!path.empty()) paths.push_back('"' + (command.path.size() == 1 ? " " + path : path) + '"');
    words += "    \"" + path + "\") words=\"" + spaced(words_after(command)) + "\" ;;\n";
    for (const OptionModel& option : command.options) {
      if (!option.takes_value) continue;
      Words patterns;
      for (const std::string& name : option.names) patterns.push_back("\"" + path + " " + name + "\"");
      values += "    " + spaced(patterns, " | ") + ") words=\"" + spaced(option.values) + "\"; value=1 ;;\n";
    }
  });
  return R"(# bash completion of qcts; to use it: source <(qcts completion bash)
_qcts() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= words= value= i
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${COMP_WORDS[i]}" in
      )" +
         spaced(paths, " | ") +
         R"() command="${command:+$command }${COMP_WORDS[i]}" ;;
    esac
  done
  case "$command $prev" in
)" + values +
         R"(  esac
  if [[ -z $value ]]; then case "$command" in
)" + words +
         R"(  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _qcts qcts
)";
}

// Quoted for zsh's _arguments: inside '...' and inside [...].
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c == '\n' ? ' ' : c;
  }
  return out;
}

// A description in an action that zsh evaluates, inside '...': every character that could mean something is
// escaped.
std::string zsh_word(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    out += plain ? std::string() : "\\";
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

std::string zsh_function(const CommandModel& command) {
  return spaced({"_qcts", spaced(command.path, "_")}, command.path.empty() ? "" : "_");
}

std::string zsh_values(const Words& values) { return values.empty() ? "_files" : "(" + spaced(values) + ")"; }

std::string zsh_script(const CommandModel& all) {
  std::string script = "#compdef qcts\n# zsh completion of qcts; to use it: source <(qcts completion zsh)\n";
  for_each(all, [&](const CommandModel& command) {
    script += zsh_function(command) + "() {\n  _arguments -C";
    for (const OptionModel& option : command.options)
      for (const std::string& name : option.names)
        script += " \\\n    '" + std::string(option.repeats ? "*" : "") + name +
                  (!option.takes_value      ? ""
                   : name.starts_with("--") ? "="
                                            : "+") +
                  "[" + zsh_text(option.description) + "]" +
                  (option.takes_value ? ":value:" + zsh_values(option.values) : "") + "'";
    for (const Words& values : command.positionals)
      script +=
          " \\\n    '*:" + std::string(values.empty() ? "file" : "word") + ":" + zsh_values(values) + "'";
    if (command.commands.empty()) {
      script += "\n}\n";
      return;
    }
    script += " \\\n    '1:command:((";
    for (const CommandModel& below : command.commands)
      script += "\\\n      " + below.path.back() + "\\:" + zsh_word(below.description) + " ";
    script +=
        "))' \\\n    '*::argument:->argument'\n  [[ $state == argument ]] || return\n  case $words[1] in\n";
    for (const CommandModel& below : command.commands)
      script += "    " + below.path.back() + ") " + zsh_function(below) + " ;;\n";
    script += "  esac\n}\n";
  });
  return script + "compdef _qcts qcts\n";
}

// Returns the script for "bash" or "zsh".
std::string completion_script(const CLI::App& app, const std::string& shell) {
  const CommandModel model = command_model(app, {});
  return shell == "zsh" ? zsh_script(model) : bash_script(model);
}

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "print a script that completes commands, options and values in a shell");
  command->add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, shell, &exit_code] {
    exit_code = exit_code_of([&] {
      std::cout << completion_script(app, *shell);
      return Outcome::conformant;
    });
  });
}

}  // namespace qcts::cli
