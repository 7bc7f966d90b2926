// SPDX-License-Identifier: BSD-3-Clause
// The two sides that run a check: the executor, and the backend that is compared with it.
#pragma once

#include <string>

#include "kernels/device_check/check.h"
#include "kernels/emulated/simt.h"

namespace qcts::device_check {

// Describes the machine of a backend. It is passed between processes.
struct Machine {
  char name[256];
  int32_t capability;       // 10 * major + minor
  int32_t driver, runtime;  // CUDA versions, 1000 * major + 10 * minor; 0: none
};

struct Backend {
  const char* noun;  // in messages
  std::vector<Check> (*checks)();
  // Returns why there is no machine to run on, or "" if there is one.
  std::string (*open)(Machine* machine);
  // Runs check.run on cases in host memory. Returns what went wrong, or "".
  std::string (*run)(const Check& check, const Cases& cases);
  int run_seconds = 60;  // after this time run() counts as hung
};

// Runs a check of on_executor::checks() under one of the executor's schedules.
std::string execute(const Check& check, const Cases& cases, simt::Architecture architecture,
                    uint32_t schedule);

// Compares the executor with itself under another schedule. This tests the program and its kernels, not the
// executor.
extern const Backend kExecutorAgain;
extern const Backend kDevice;  // the first GPU; defined in device.cc, which nvcc compiles

}  // namespace qcts::device_check
