// SPDX-License-Identifier: BSD-3-Clause
// qcts: runs the command line and catches any exception that is left.
#include <exception>
#include <iostream>

#include "suites/cli/program.h"

int main(int argc, char** argv) {
  constexpr int kInfrastructure = 5;
  try {
    return qcts::cli::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "qcts: internal error: " << error.what() << "\n";
  } catch (...) {
    std::cerr << "qcts: internal error\n";
  }
  return kInfrastructure;
}
