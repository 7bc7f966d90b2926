// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/command_line.h"

#include <iostream>
#include <map>

#include "suites/base/printable.h"
#include "suites/base/run_error.h"

namespace qcts::cli {

CLI::Validator not_negative() {
  return {[](const std::string& word) {
            return word.starts_with('-') ? "'" + word + "' is negative" : std::string();
          },
          "UINT"};
}

void last_option_wins(CLI::App& command) {
  for (CLI::Option* option : command.get_options([](const CLI::Option* declared) {
         return declared->get_items_expected_max() == 1 && !declared->get_positional();
       }))
    option->take_last();
}

void add_junit_option(CLI::App& command, JunitForm& form) {
  static const std::map<std::string, JunitForm> kForms = {{"cells", JunitForm::cells},
                                                          {"cases", JunitForm::cases}};
  command
      .add_option_function<std::string>(
          "--junit", [&form](const std::string& word) { form = kForms.at(word); },
          "a testcase of junit.xml is a cell (kind, operation, scheme and implementation), or a case")
      ->check(CLI::IsMember({"cells", "cases"}))
      ->default_str("cells");
}

int exit_code_of(const std::function<Outcome()>& body) {
  const auto say = [](const std::exception& error, Outcome outcome) {
    std::cout.flush();
    std::cerr << "qcts: " << printable(error.what()) << "\n";
    return static_cast<int>(outcome);
  };
  try {
    return static_cast<int>(body());
  } catch (const RunError& error) {
    return say(error, error.outcome());
  } catch (const std::exception& error) {
    return say(error, Outcome::infrastructure);
  }
}

}  // namespace qcts::cli
