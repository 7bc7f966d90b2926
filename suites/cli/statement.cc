// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/statement.h"

#include <charconv>
#include <iostream>
#include <memory>
#include <string>

#include <unistd.h>

#include "suites/base/json_document.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/statement/verify.h"

namespace qcts::cli {
namespace {

// Reads "5%" or "5".
double percent_of(const std::string& text) {
  const std::string number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  double percent = 0;
  const char* const end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, percent);
  if (read.ec != std::errc() || read.ptr != end || !(percent > 0 && percent <= 100))
    throw UsageError("--sample " + text + ": must be a share such as 5%, above 0 and at most 100%");
  return percent;
}

struct VerifyArguments {
  VerifyRequest request;
  std::string sample = "5%";
  bool json = false;
};

Outcome run_verify(VerifyArguments& words) {
  words.request.sample_percent = percent_of(words.sample);
  const VerifyResult result = verify_statement(words.request);
  const bool accepted = result.faults.empty();
  if (words.json) {
    print_json("verify", {{"file", words.request.statement.string()},
                          {"accepted", accepted},
                          {"faults", result.faults},
                          {"lines", result.lines}});
  } else {
    Printout out(screen_of(STDOUT_FILENO));
    for (const std::string& line : accepted ? result.lines : result.faults)
      out.text((accepted ? "" : "refused: ") + line, 0, accepted ? Ink::plain : Ink::red);
    std::cout << out.str();
  }
  return accepted ? Outcome::conformant : Outcome::failed;
}

}  // namespace

void add_statement(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<StatementRequest>();
  CLI::App* command = app.add_subcommand(
      "statement", "state what a complete run of one provider shows, in a file to hand on");
  command->add_option("DIR", request->run, "the folder of a finished run, or its run.jsonl.gz")->required();
  command->add_option("--vendor", request->vendor, "who makes the statement")->required();
  command->add_option("--product", request->product, "the product that the statement is about")->required();
  command->add_option(
      "--key", request->key,
      "sign with the 32-byte Ed25519 key in this file, which only its owner may have access to");
  command->add_option("--out", request->out,
                      "the file to write; default: statement.json in the run's folder");
  last_option_wins(*command);
  command->callback([request, &exit_code] {
    exit_code = exit_code_of([&] {
      std::cout << make_statement(*request);
      return Outcome::conformant;
    });
  });
}

void add_verify(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<VerifyArguments>();
  VerifyRequest& request = words->request;
  CLI::App* command =
      app.add_subcommand("verify", "check a statement, and judge a random sample of its cases again");
  command->add_option("FILE", request.statement, "a file that qcts statement wrote")->required();
  command->add_option("--run", request.run, "the folder (or record) of the run that the statement is about");
  command->add_option("--provider", request.provider,
                      "the library that the statement is about; judges some of its cases again");
  command->add_option("--sample", words->sample, "the share of its cases to judge again (at least 50 cases)")
      ->capture_default_str();
  command->add_option("--public-key", request.public_key,
                      "the vendor's key as PEM; default: the key in the statement");
  command
      ->add_option("--jobs", request.jobs,
                   "workers at a time (0: one per processor, at most 4, fewer if a container allows less)")
      ->check(not_negative())
      ->capture_default_str();
  command->add_flag("--json", words->json, "print JSON");
  last_option_wins(*command);
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return run_verify(*words); }); });
}

}  // namespace qcts::cli
