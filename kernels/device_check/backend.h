// SPDX-License-Identifier: BSD-3-Clause
// The two sides that run a check: the executor, and what is compared with it.
#pragma once

#include <string>

#include "kernels/device_check/check.h"
#include "kernels/emulated/simt.h"

namespace qcts::device_check {

// Passed between processes.
struct Machine {
  char name[256];
  int32_t capability;       // 10 * major + minor
  int32_t driver, runtime;  // CUDA versions, 1000 * major + 10 * minor; 0: none
};

struct Backend {
  const char* noun;  // in messages
  std::vector<Check> (*checks)();
  // Returns why there is no machine to run on, or "".
  std::string (*open)(Machine* machine);
  // Runs check.run on cases in host memory. Returns what went wrong, or "".
  std::string (*run)(const Check& check, const Cases& cases);
  int run_seconds = 60;  // then run() counts as hung
};

// Runs a check of on_executor::checks(), with one of the executor's schedules.
std::string execute(const Check& check, const Cases& cases, simt::Architecture architecture,
                    uint32_t schedule);

// Compares the executor with itself under another schedule: a test of this program and its kernels, not of
// the executor.
extern const Backend kExecutorAgain;
extern const Backend kDevice;  // the first GPU; device.cc, which nvcc compiles

}  // namespace qcts::device_check
