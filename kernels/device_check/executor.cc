// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "kernels/cuda/failure.h"
#include "kernels/device_check/backend.h"

namespace qcts::device_check {
namespace {

constexpr uint32_t kOtherSchedule = 2;  // runs at random, and copies arrive early

std::string open_executor(Machine* machine) {
  *machine = {};
  std::snprintf(machine->name, sizeof machine->name, "executor, schedule %u", kOtherSchedule);
  machine->capability = 90;
  return "";
}
std::string execute_again(const Check& check, const Cases& cases) {
  return execute(check, cases, simt::Architecture::hopper, kOtherSchedule);
}

}  // namespace

std::string execute(const Check& check, const Cases& cases, simt::Architecture architecture,
                    uint32_t schedule) {
  const auto buffer = [](const char* name, const uint8_t* first, uint64_t words, bool writable) {
    return simt::Buffer{name, first, 1, 4 * words, 4 * words, writable};
  };
  simt::configure({.schedule = simt::schedule(schedule),
                   .architecture = architecture,
                   .buffers = {buffer("common", cases.common, check.common_words, false),
                               buffer("in", cases.in, check.in_words * cases.count, false),
                               buffer("out", cases.out, check.out_words * cases.count, true)}});
  if (check.run(cases) == QCTS_OK) return "";
  char why[1024];
  last_failure(why, sizeof why);
  return std::string(why) + " (schedule " + std::to_string(schedule) + ")";
}

const Backend kExecutorAgain = {"executor again", on_executor::checks, open_executor, execute_again};

}  // namespace qcts::device_check
