// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cheats/library/kernel.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace qcts::cheats {
namespace {

const void* plane(const qcts_problem& problem, const char* name) {
  for (uint32_t i = 0; i < problem.n_planes; ++i)
    if (std::strcmp(problem.planes[i].name, name) == 0) return problem.planes[i].data;
  return nullptr;
}

}  // namespace

const qcts_numerics kNumerics = {
    .struct_size = sizeof(qcts_numerics),
    .x_cast = QCTS_NONE,
    .scale_cast = QCTS_NONE,
    .weight_cast = QCTS_NONE,
    .product_cast = QCTS_F32,
    .accumulator = QCTS_F32,
    .partial_cast = QCTS_F32,
    .output_cast = QCTS_F32,
    .flags = QCTS_NUM_SCALE_AFTER_SUM,
    .reserved = 0,
};

const int8_t* codes_of(const qcts_problem& problem) {
  return static_cast<const int8_t*>(plane(problem, "qdata"));
}

float scale_of(const qcts_problem& problem, int64_t n) { return load(plane(problem, "scale"), QCTS_F32, n); }

int zero_of(const qcts_problem& problem, int64_t n) {
  return static_cast<const int8_t*>(plane(problem, "zero_point"))[n];
}

float load(const void* base, uint32_t dtype, int64_t index) {
  float value = 0;
  if (dtype == QCTS_F32) {
    std::memcpy(&value, static_cast<const char*>(base) + index * 4, 4);
    return value;
  }
  uint16_t half = 0;
  std::memcpy(&half, static_cast<const char*>(base) + index * 2, 2);
  const uint32_t bits = uint32_t{half} << 16;
  std::memcpy(&value, &bits, 4);
  return value;
}

// Rounds to the nearest bfloat16, ties to even. A NaN stays one.
void store(void* base, uint32_t dtype, int64_t index, float value) {
  if (dtype == QCTS_F32) {
    std::memcpy(static_cast<char*>(base) + index * 4, &value, 4);
    return;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  bits = value != value ? 0x7fc00000 : bits + 0x7fff + (bits >> 16 & 1);
  const auto half = static_cast<uint16_t>(bits >> 16);
  std::memcpy(static_cast<char*>(base) + index * 2, &half, 2);
}

float x_at(const qcts_problem& problem, int64_t m, int64_t k) {
  return load(static_cast<const char*>(problem.x) + m * problem.ldx_bytes, problem.x_dtype, k);
}

float y_at(const qcts_problem& problem, int64_t m, int64_t n) {
  return load(static_cast<const char*>(problem.y) + m * problem.ldy_bytes, problem.y_dtype, n);
}

void put(const qcts_problem& problem, int64_t m, int64_t n, float value) {
  store(static_cast<char*>(problem.y) + m * problem.ldy_bytes, problem.y_dtype, n, value);
}

float element(const qcts_problem& problem, int64_t m, int64_t n) { return element(problem, m, n, problem.k); }

float element(const qcts_problem& problem, int64_t m, int64_t n, int64_t terms) {
  const int8_t* codes = codes_of(problem) + n * problem.k;
  const int zero = zero_of(problem, n);
  float sum = 0;
  for (int64_t k = 0; k < terms; ++k) sum += x_at(problem, m, k) * static_cast<float>(codes[k] - zero);
  sum *= scale_of(problem, n);
  return problem.bias == nullptr ? sum : sum + load(problem.bias, problem.bias_dtype, n);
}

qcts_status compute(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) put(*problem, m, n, element(*problem, m, n));
  return QCTS_OK;
}

qcts_status compute_nothing(const qcts_problem*) { return QCTS_OK; }

qcts_status supports_by_type(const qcts_problem* problem, char* why, size_t why_size) {
  const auto is_served = [](uint32_t dtype) { return dtype == QCTS_F32 || dtype == QCTS_BF16; };
  if (is_served(problem->x_dtype) && is_served(problem->y_dtype) &&
      (problem->bias == nullptr || is_served(problem->bias_dtype)))
    return QCTS_OK;
  std::snprintf(why, why_size, "float32 and bfloat16 only");
  return QCTS_UNSUPPORTED;
}

void tell(const char* what, bool done) {
  ::dprintf(STDERR_FILENO, "attempt: %s: %s\n", what, done ? "done" : "refused: it had no effect");
}

void tell_call(const char* what, bool done) {
  const int error = errno;
  ::dprintf(STDERR_FILENO, "attempt: %s: %s%s\n", what,
            done ? "done" : "refused: ", done ? "" : std::strerror(error));
}

}  // namespace qcts::cheats
