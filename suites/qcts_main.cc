// SPDX-License-Identifier: BSD-3-Clause
// qcts: runs the command line and catches any exception that is left.
#include <csignal>
#include <exception>
#include <iostream>

#include "suites/cli/program.h"

int main(int argc, char** argv) {
  constexpr int kInfrastructure = 5;
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes then fails like one on a full disk
  try {
    return qcts::cli::run_program(argc, argv, qcts::cli::kBuiltCommit);
  } catch (const std::exception& error) {
    std::cerr << "qcts: internal error: " << error.what() << "\n";
  } catch (...) {
    std::cerr << "qcts: internal error\n";
  }
  return kInfrastructure;
}
