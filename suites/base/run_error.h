// SPDX-License-Identifier: BSD-3-Clause
// The errors that end a command. Each carries the exit code.
#pragma once

#include <stdexcept>
#include <string>

#include "reports/report.h"

namespace qcts {

class RunError : public std::runtime_error {
 public:
  RunError(Outcome outcome, const std::string& what) : std::runtime_error(what), outcome_(outcome) {}
  Outcome outcome() const { return outcome_; }

 private:
  Outcome outcome_;
};

// A wrong argument, or a request that no file or run can satisfy.
class UsageError : public RunError {
 public:
  explicit UsageError(const std::string& what) : RunError(Outcome::usage, what) {}
};

// The command ran, and its result is negative.
class Failure : public RunError {
 public:
  explicit Failure(const std::string& what) : RunError(Outcome::failed, what) {}
};

// An output could not be written, or its folder does not exist.
class WriteFailure : public RunError {
 public:
  explicit WriteFailure(const std::string& what) : RunError(Outcome::infrastructure, what) {}
};

}  // namespace qcts
