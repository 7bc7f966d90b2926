// SPDX-License-Identifier: BSD-3-Clause
// The error that ends a command without a verdict. It carries the exit code.
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

}  // namespace qcts
