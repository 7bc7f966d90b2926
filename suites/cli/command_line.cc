// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/command_line.h"

#include <iostream>
#include <map>
#include <span>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/refusal.h"
#include "suites/base/json_document.h"
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

void write_document(const std::filesystem::path& file, std::string_view name,
                    const nlohmann::ordered_json& body, bool silent) {
  const std::string text =
      json_document(name, body).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  try {
    write_file_atomically(file, std::as_bytes(std::span(text)));
  } catch (const IoError& error) {
    throw WriteFailure(file.string() + " cannot be written: " + error.what());
  }
  if (!silent) std::cout << "wrote " << printable(file.string()) << "\n";
}

int exit_code_of(const std::function<Outcome()>& body) {
  const auto say = [](const std::string& text, Outcome outcome) {
    std::cout.flush();
    std::cerr << "qcts: " << printable(text) << "\n";
    return static_cast<int>(outcome);
  };
  try {
    const Outcome outcome = body();
    std::cout.flush();
    if (!std::cout) throw WriteFailure("standard output: write failed");
    return static_cast<int>(outcome);
  } catch (const RunError& error) {
    return say(error.what(), error.outcome());
  } catch (const std::exception& error) {
    return say(error.what(), Outcome::infrastructure);
  }
}

}  // namespace qcts::cli
