// SPDX-License-Identifier: BSD-3-Clause
// The correct kernel that every cheat and every honest twin starts from: linear of int8_row, one element at a
// time, for float32 and bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::cheats {

// One thing that a provider does, good or bad. The library's file name says which.
struct Habit {
  const char* name;
  qcts_status (*run)(const qcts_problem*);
  void (*at_load)() = nullptr;
  qcts_status (*supports)(const qcts_problem*, char* why, size_t why_size) = nullptr;  // NULL: only by type
  const qcts_numerics* numerics = nullptr;                                             // NULL: kNumerics
  const qcts_fused_sums* fused_sums = nullptr;                                         // NULL: IEEE additions
  uint64_t (*prepared_bytes)(const qcts_problem*) = nullptr;
  qcts_status (*prepare)(const qcts_problem*, void* prepared) = nullptr;
};

struct HabitList {
  const Habit* begin;
  size_t count;
};
HabitList reaching_habits();   // they try to reach their judge, and compute nothing
HabitList answering_habits();  // they answer without the work
HabitList late_habits();       // they work when they should not, or elsewhere
HabitList timed_habits();      // only the clock can show them
HabitList honest_habits();     // the twins

// Products may be rounded before they are added; codes are summed first.
extern const qcts_numerics kNumerics;

const int8_t* codes_of(const qcts_problem& problem);
float scale_of(const qcts_problem& problem, int64_t n);
int zero_of(const qcts_problem& problem, int64_t n);

float load(const void* base, uint32_t dtype, int64_t index);
void store(void* base, uint32_t dtype, int64_t index, float value);
float x_at(const qcts_problem& problem, int64_t m, int64_t k);
float y_at(const qcts_problem& problem, int64_t m, int64_t n);
void put(const qcts_problem& problem, int64_t m, int64_t n, float value);

// The correct value of y[m, n]; with `terms` below k, only the first ones are summed.
float element(const qcts_problem& problem, int64_t m, int64_t n);
float element(const qcts_problem& problem, int64_t m, int64_t n, int64_t terms);
qcts_status compute(const qcts_problem* problem);
qcts_status compute_nothing(const qcts_problem* problem);
qcts_status supports_by_type(const qcts_problem* problem, char* why, size_t why_size);

// Writes to the judge's log what was tried: "attempt: WHAT: done", or "refused: " and why.
void tell(const char* what, bool done);
// The same with the reason in errno.
void tell_call(const char* what, bool done);

}  // namespace qcts::cheats
