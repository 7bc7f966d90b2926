// SPDX-License-Identifier: BSD-3-Clause
// A provider of plain loops for int8_row whose faults the environment selects, for scripts/bench_compare:
//   QCTS_SLOWED="OP M N PERCENT"  a problem with this operation, m and n (dequantize has m = 0) computes this
//                                 percentage of the weight's rows twice, and takes that much longer
//   QCTS_BROKEN=OP                the last element of y is wrong if k is odd
// OP is the number of a qcts_op. Weights, x, y and bias are float32 or bfloat16.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace {

struct Orders {
  unsigned slowed = 0, broken = 0;
  long m = 0, n = 0;
  double percent = 0;
  Orders() {
    if (const char* words = std::getenv("QCTS_SLOWED"))
      if (std::sscanf(words, "%u %ld %ld %lf", &slowed, &m, &n, &percent) != 4) slowed = 0;
    if (const char* word = std::getenv("QCTS_BROKEN"))
      broken = static_cast<unsigned>(std::strtoul(word, nullptr, 10));
  }
};
const Orders kOrders;

const void* data_of(const qcts_problem& p, const char* name) {
  for (uint32_t i = 0; i < p.n_planes; ++i)
    if (std::strcmp(p.planes[i].name, name) == 0) return p.planes[i].data;
  return nullptr;
}

// A row of the weight: code - zero_point, times the scale.
struct Row {
  const int8_t* codes;
  float scale;
  int zero_point;
  Row(const qcts_problem& p, int64_t n)
      : codes(static_cast<const int8_t*>(data_of(p, "qdata")) + n * p.k),
        zero_point(static_cast<const int8_t*>(data_of(p, "zero_point"))[n]) {
    std::memcpy(&scale, static_cast<const char*>(data_of(p, "scale")) + 4 * n, 4);
  }
};

float load(const void* data, int64_t i, uint32_t dtype) {
  const char* bytes = static_cast<const char*>(data);
  uint32_t word = 0;
  if (dtype == QCTS_F32)
    std::memcpy(&word, bytes + 4 * i, 4);
  else
    std::memcpy(reinterpret_cast<char*>(&word) + 2, bytes + 2 * i, 2);
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

// Rounds to the nearest even bfloat16.
void store(void* data, int64_t i, uint32_t dtype, float value) {
  char* bytes = static_cast<char*>(data);
  if (dtype == QCTS_F32) {
    std::memcpy(bytes + 4 * i, &value, 4);
    return;
  }
  uint32_t word;
  std::memcpy(&word, &value, 4);
  const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
  const auto half = static_cast<uint16_t>(is_nan ? 0x7fc0u : (word + 0x7fffu + (word >> 16 & 1)) >> 16);
  std::memcpy(bytes + 2 * i, &half, 2);
}

char* row_of_y(const qcts_problem& p, int64_t row) { return static_cast<char*>(p.y) + row * p.ldy_bytes; }

void dequantize_rows(const qcts_problem& p, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) {
    const Row w(p, n);
    for (int64_t k = 0; k < p.k; ++k)
      store(row_of_y(p, n), k, p.w_dtype, static_cast<float>(w.codes[k] - w.zero_point) * w.scale);
  }
}

void multiply_rows(const qcts_problem& p, const std::vector<float>& x, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) {
    const Row w(p, n);
    for (int64_t m = 0; m < p.m; ++m) {
      const float* row = x.data() + m * p.k;
      float sum = 0;
      for (int64_t k = 0; k < p.k; ++k) sum += row[k] * static_cast<float>(w.codes[k] - w.zero_point);
      sum *= w.scale;
      if (p.bias != nullptr) sum += load(p.bias, n, p.bias_dtype);
      store(row_of_y(p, m), n, p.y_dtype, sum);
    }
  }
}

// Calls body(first, last) for all rows of the weight, and again for the rows that QCTS_SLOWED repeats. The
// last element of y, in `row` and `column`, gets the planted fault.
template <typename Body>
qcts_status run_rows(const qcts_problem& p, int64_t row, int64_t column, uint32_t dtype, const Body& body) {
  body(0, p.n);
  if (kOrders.slowed == p.op && kOrders.n == p.n && (p.op == QCTS_OP_DEQUANTIZE || kOrders.m == p.m))
    body(0, static_cast<int64_t>(static_cast<double>(p.n) * kOrders.percent / 100 + 0.5));
  if (kOrders.broken == p.op && p.k % 2 == 1) store(row_of_y(p, row), column, dtype, 12345);
  return QCTS_OK;
}

qcts_status dequantize(const qcts_problem* p) {
  return run_rows(*p, p->n - 1, p->k - 1, p->w_dtype,
                  [&](int64_t first, int64_t last) { dequantize_rows(*p, first, last); });
}

qcts_status linear(const qcts_problem* p) {
  std::vector<float> x(static_cast<size_t>(p->m * p->k));
  for (int64_t m = 0; m < p->m; ++m)
    for (int64_t k = 0; k < p->k; ++k)
      x[static_cast<size_t>(m * p->k + k)] =
          load(static_cast<const char*>(p->x) + m * p->ldx_bytes, k, p->x_dtype);
  return run_rows(*p, p->m - 1, p->n - 1, p->y_dtype,
                  [&](int64_t first, int64_t last) { multiply_rows(*p, x, first, last); });
}

qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  const auto knows = [](uint32_t dtype) { return dtype == QCTS_F32 || dtype == QCTS_BF16; };
  bool known = knows(p->w_dtype);
  if (p->op == QCTS_OP_LINEAR)
    known = known && knows(p->x_dtype) && knows(p->y_dtype) && (p->bias == nullptr || knows(p->bias_dtype)) &&
            std::string_view(p->activation) == "weight_only";
  if (known) return QCTS_OK;
  std::snprintf(why, why_size, "float32 and bfloat16 only, and x as it is");
  return QCTS_UNSUPPORTED;
}

constexpr qcts_kernel kernel_of(qcts_op op, qcts_status (*run)(const qcts_problem*)) {
  qcts_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.op = op;
  kernel.scheme = "int8_row";
  kernel.variant = "loops";
  kernel.claims = QCTS_CLAIM_DETERMINISTIC;
  kernel.supports = supports;
  kernel.run = run;
  kernel.numerics.struct_size = sizeof kernel.numerics;
  kernel.numerics.product_cast = kernel.numerics.accumulator = QCTS_F32;
  kernel.numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  return kernel;
}

constexpr qcts_kernel kDequantize = kernel_of(QCTS_OP_DEQUANTIZE, dequantize),
                      kLinear = kernel_of(QCTS_OP_LINEAR, linear);
const qcts_kernel* const kKernels[] = {&kDequantize, &kLinear};
const qcts_provider kProvider = {.struct_size = sizeof(qcts_provider),
                                 .abi_version = QCTS_ABI_VERSION,
                                 .name = "paced",
                                 .version = "1",
                                 .url = nullptr,
                                 .choices = nullptr,
                                 .n_kernels = 2,
                                 .claims = 0,
                                 .kernels = kKernels,
                                 .load_save = nullptr,
                                 .run_program = nullptr,
                                 .profile = nullptr};

}  // namespace

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t) { return &kProvider; }
