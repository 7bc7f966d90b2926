// SPDX-License-Identifier: BSD-3-Clause
// A provider with one habit. The library's file name selects it: qcts_cheat_<habit>.so. With QCTS_CHEAT_OFF
// in the environment it computes correctly and does nothing else, whatever its name is.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include "suites/selftest/cheats/library/kernel.h"

namespace qcts::cheats {
namespace {

constexpr Habit kSwitchedOff = {.name = "switched_off", .run = compute};

// Returns nullptr if the file name is not that of a habit.
const Habit* habit_of_file() {
  static constexpr std::string_view kPrefix = "qcts_cheat_";
  static const char here = 0;
  Dl_info info;
  if (::dladdr(&here, &info) == 0) return nullptr;
  const std::string stem = std::filesystem::path(info.dli_fname).stem().string();
  if (!stem.starts_with(kPrefix)) return nullptr;
  const std::string_view name = std::string_view(stem).substr(kPrefix.size());
  for (const HabitList& list :
       {reaching_habits(), answering_habits(), late_habits(), timed_habits(), honest_habits()})
    for (size_t i = 0; i < list.count; ++i)
      if (name == list.begin[i].name) return std::getenv("QCTS_CHEAT_OFF") ? &kSwitchedOff : list.begin + i;
  return nullptr;
}

qcts_kernel kernel_of(const Habit& habit) {
  qcts_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_LINEAR;
  kernel.scheme = "int8_row";
  kernel.variant = "scalar";
  kernel.description = "for the judge's own tests";
  kernel.numerics = habit.numerics == nullptr ? kNumerics : *habit.numerics;
  if (habit.fused_sums != nullptr) kernel.fused_sums = *habit.fused_sums;
  kernel.supports = habit.supports == nullptr ? supports_by_type : habit.supports;
  kernel.prepared_bytes = habit.prepared_bytes;
  kernel.prepare = habit.prepare;
  kernel.run = habit.run;
  return kernel;
}

const qcts_provider* provider_of(const Habit& habit) {
  static const qcts_kernel kernel = kernel_of(habit);
  static const qcts_kernel* const kernels[] = {&kernel};
  static const qcts_provider provider = {
      .struct_size = sizeof(qcts_provider),
      .abi_version = QCTS_ABI_VERSION,
      .name = "cheat",
      .version = "1",
      .url = nullptr,
      .choices = nullptr,
      .n_kernels = 1,
      .claims = 0,
      .kernels = kernels,
      .load_save = nullptr,
      .run_program = nullptr,
      .profile = nullptr,
  };
  if (habit.at_load != nullptr) habit.at_load();
  return &provider;
}

}  // namespace
}  // namespace qcts::cheats

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t) {
  if (const qcts::cheats::Habit* habit = qcts::cheats::habit_of_file())
    return qcts::cheats::provider_of(*habit);
  std::fputs("qcts_cheat: the file name is not that of a habit\n", stderr);
  return nullptr;
}
