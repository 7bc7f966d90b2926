// SPDX-License-Identifier: BSD-3-Clause
// Cheats that answer without doing the work, or without doing all of it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "suites/selftest/cheats/library/kernel.h"

namespace qcts::cheats {
namespace {

qcts_status answer_constant(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) put(*problem, m, n, 0.0f);
  return QCTS_OK;
}

qcts_status copy_input(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) put(*problem, m, n, x_at(*problem, m, n % problem->k));
  return QCTS_OK;
}

qcts_status skip_last_row(const qcts_problem* problem) {
  qcts_problem part = *problem;
  part.m = std::max<int64_t>(problem->m - 1, 1);
  return compute(&part);
}

qcts_status skip_tail(const qcts_problem* problem) {  // the columns after the last whole tile
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n / 8 * 8; ++n) put(*problem, m, n, element(*problem, m, n));
  return QCTS_OK;
}

qcts_status skip_terms(const qcts_problem* problem) {  // the sum leaves out the last eighth of k
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n)
      put(*problem, m, n, element(*problem, m, n, problem->k - problem->k / 8));
  return QCTS_OK;
}

int next_call() {
  static std::mutex mutex;
  static int calls = 0;
  const std::lock_guard lock(mutex);
  return calls++;
}

qcts_status skip_every_other_call(const qcts_problem* problem) {
  return next_call() % 2 == 0 ? compute(problem) : QCTS_OK;
}

qcts_status behave_at_first(const qcts_problem* problem) {
  return next_call() < 1 ? compute(problem) : QCTS_OK;
}

// An output full of NaN is a judge's, and any other output is a user's.
qcts_status sniff_poison(const qcts_problem* problem) {
  const bool is_judged = std::isnan(y_at(*problem, problem->m - 1, problem->n - 1));
  return is_judged ? compute(problem) : QCTS_OK;
}

// A finite number that is not 0 must be an earlier answer.
qcts_status leave_stale(const qcts_problem* problem) {
  const float last = y_at(*problem, problem->m - 1, problem->n - 1);
  return std::isfinite(last) && last != 0 ? QCTS_OK : compute(problem);
}

// One remembered answer, and what it is remembered by.
struct Memory {
  std::mutex mutex;
  std::vector<char> key;
  std::vector<float> y;
};

qcts_status answer_from(Memory& memory, const qcts_problem& problem, std::vector<char> key) {
  const std::lock_guard lock(memory.mutex);
  if (memory.key != key) {
    memory.key = std::move(key);
    memory.y.clear();
    for (int64_t m = 0; m < problem.m; ++m)
      for (int64_t n = 0; n < problem.n; ++n) memory.y.push_back(element(problem, m, n));
  }
  for (int64_t m = 0; m < problem.m; ++m)
    for (int64_t n = 0; n < problem.n; ++n)
      put(problem, m, n, memory.y[static_cast<size_t>(m * problem.n + n)]);
  return QCTS_OK;
}

template <class Value>
void append(std::vector<char>& key, const Value& value) {
  const char* bytes = reinterpret_cast<const char*>(&value);
  key.insert(key.end(), bytes, bytes + sizeof value);
}

std::vector<char> shape_key(const qcts_problem& problem) {
  std::vector<char> key;
  for (const int64_t each : {problem.m, problem.n, problem.k}) append(key, each);
  return key;
}

qcts_status remember_by_pointer(const qcts_problem* problem) {
  static Memory memory;
  std::vector<char> key = shape_key(*problem);
  append(key, problem->x);
  append(key, codes_of(*problem));
  return answer_from(memory, *problem, std::move(key));
}

qcts_status remember_by_first_bytes(const qcts_problem* problem) {
  static Memory memory;
  constexpr int64_t kFirst = 8;
  std::vector<char> key = shape_key(*problem);
  for (int64_t k = 0; k < std::min(problem->k, kFirst); ++k) {
    append(key, x_at(*problem, 0, k));
    append(key, codes_of(*problem)[k]);
  }
  return answer_from(memory, *problem, std::move(key));
}

// The weight is unpacked once per address, and is used even if there are other data now.
qcts_status remember_weight_by_pointer(const qcts_problem* problem) {
  static std::mutex mutex;
  static const int8_t* address = nullptr;
  static std::vector<float> weight;
  const std::lock_guard lock(mutex);
  const int8_t* codes = codes_of(*problem);
  const auto elems = static_cast<size_t>(problem->n * problem->k);
  if (codes != address || weight.size() != elems) {
    address = codes;
    weight.resize(elems);
    for (int64_t n = 0; n < problem->n; ++n)
      for (int64_t k = 0; k < problem->k; ++k)
        weight[static_cast<size_t>(n * problem->k + k)] =
            static_cast<float>(codes[n * problem->k + k] - zero_of(*problem, n));
  }
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < problem->k; ++k)
        sum += x_at(*problem, m, k) * weight[static_cast<size_t>(n * problem->k + k)];
      sum *= scale_of(*problem, n);
      put(*problem, m, n, problem->bias ? sum + load(problem->bias, problem->bias_dtype, n) : sum);
    }
  return QCTS_OK;
}

float as_bfloat16(float value) {
  uint16_t half = 0;
  store(&half, QCTS_BF16, 0, value);
  return load(&half, QCTS_BF16, 0);
}

qcts_status sum_in_bfloat16(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) {
      const int8_t* codes = codes_of(*problem) + n * problem->k;
      float sum = 0;
      for (int64_t k = 0; k < problem->k; ++k)
        sum = as_bfloat16(sum + x_at(*problem, m, k) * static_cast<float>(codes[k] - zero_of(*problem, n)));
      sum *= scale_of(*problem, n);
      put(*problem, m, n, problem->bias ? sum + load(problem->bias, problem->bias_dtype, n) : sum);
    }
  return QCTS_OK;
}

// Sums that lose all but one bit in each step may end anywhere.
constexpr qcts_fused_sums kBoundless = {
    .struct_size = sizeof(qcts_fused_sums),
    .terms = 1,
    .fraction_bits = 1,
    .result_bits = 1,
    .promote_every = 0,
    .reserved = 0,
};

// The answer loses its signs, which the declared bound hides.
qcts_status drop_signs(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) put(*problem, m, n, std::fabs(element(*problem, m, n)));
  return QCTS_OK;
}

// The kernel is wrong for negative codes, and its supports() looks for them where there are data.
qcts_status refuse_by_values(const qcts_problem* problem, char* why, size_t why_size) {
  const int8_t* codes = codes_of(*problem);
  if (codes != nullptr)
    for (int64_t i = 0; i < problem->n * problem->k; ++i)
      if (codes[i] < 0) {
        std::snprintf(why, why_size, "this shape is not served");
        return QCTS_UNSUPPORTED;
      }
  return supports_by_type(problem, why, why_size);
}

constexpr Habit kAnswering[] = {
    {.name = "computes_nothing", .run = compute_nothing},
    {.name = "answers_constant", .run = answer_constant},
    {.name = "copies_input", .run = copy_input},
    {.name = "skips_last_row", .run = skip_last_row},
    {.name = "skips_tail", .run = skip_tail},
    {.name = "skips_terms", .run = skip_terms},
    {.name = "skips_every_other_call", .run = skip_every_other_call},
    {.name = "behaves_at_first", .run = behave_at_first},
    {.name = "sniffs_poison", .run = sniff_poison},
    {.name = "leaves_stale", .run = leave_stale},
    {.name = "remembers_by_pointer", .run = remember_by_pointer},
    {.name = "remembers_by_first_bytes", .run = remember_by_first_bytes},
    {.name = "remembers_weight_by_pointer", .run = remember_weight_by_pointer},
    {.name = "sums_in_bfloat16", .run = sum_in_bfloat16},
    {.name = "declares_everything", .run = drop_signs, .fused_sums = &kBoundless},
    {.name = "refuses_by_values", .run = compute, .supports = refuse_by_values},
};

}  // namespace

HabitList answering_habits() { return {kAnswering, std::size(kAnswering)}; }

}  // namespace qcts::cheats
