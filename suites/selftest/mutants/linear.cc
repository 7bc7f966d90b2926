// SPDX-License-Identifier: BSD-3-Clause
// linear of the three families: weights as float32, one float32 multiplication and one float32 addition per
// term, in the order of k. With the faults l_* (weights.cc has the faults of the weights).
#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <thread>

#include <xmmintrin.h>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/weights.h"

namespace qcts::mutants {
namespace {

using scalar::load;
using scalar::round_to;
using enum Fault;

constexpr unsigned kFlush = 1u << 15 | 1u << 6;  // flush-to-zero, denormals-are-zero

// Calls of this library, for the faults that depend on history.
std::atomic<int64_t> calls{0};

struct Call {
  const qcts_problem& p;
  int64_t number;
  std::vector<float> x;  // [m, k], as the faults read it
};

bool is_finite(float value) { return std::fabs(value) <= FLT_MAX; }
float largest_of(uint32_t dtype) {
  return dtype == QCTS_F16 ? 65504.0f : dtype == QCTS_BF16 ? 0x1.FEp127f : FLT_MAX;
}

float x_value(uint32_t dtype, float value) {
  if (planted(l_x_as_bf16)) return round_to(QCTS_BF16, value);
  if (planted(l_subnormal_f16_x_zero) && dtype == QCTS_F16 && std::fabs(value) < 0x1p-14f)
    return std::copysign(0.0f, value);
  if (planted(l_infinite_x_finite) && std::fabs(value) > FLT_MAX)
    return std::copysign(largest_of(dtype), value);
  if (planted(l_x_clamped_at_4100) && std::fabs(value) > 4100) return std::copysign(4100.0f, value);
  return value;
}

float read_x(const qcts_problem& p, int64_t m, int64_t k) {
  const int64_t ld = planted(l_ldx_ignored) ? p.k * dtype_bytes(p.x_dtype) : p.ldx_bytes;
  if (planted(l_row_16_reads_row_0) && m == 16) m = 0;
  if (planted(l_rows_in_16_bits)) m &= 0xFFFF;
  auto base = reinterpret_cast<uintptr_t>(p.x);
  if (planted(l_aligns_x_down)) base &= ~uintptr_t{15};
  return x_value(p.x_dtype, load(p.x_dtype, reinterpret_cast<const char*>(base) + m * ld, k));
}

// Reading x again for each column of y would take four fifths of the time of kill --all.
std::vector<float> read_rows_of_x(const qcts_problem& p) {
  std::vector<float> x;
  x.reserve(static_cast<size_t>(p.m * p.k));
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t k = 0; k < p.k; ++k) x.push_back(read_x(p, m, k));
  return x;
}

// Under l_static_x, other calls overwrite x while this one sums.
float x_at(const Call& call, int64_t m, int64_t k) {
  return planted(l_static_x) ? read_x(call.p, m, k) : call.x[static_cast<size_t>(m * call.p.k + k)];
}

char* y_row(const Call& call, int64_t m) {
  const qcts_problem& p = call.p;
  const int64_t ld = planted(l_ldy_ignored) ? p.n * dtype_bytes(p.y_dtype) : p.ldy_bytes;
  return static_cast<char*>(p.y) + m * ld;
}

// Adds like a tensor core that keeps 13 bits below the largest exponent.
float add_with_13_bits(float sum, float term) {
  const float larger = std::max(std::fabs(sum), std::fabs(term));
  if (!(larger > 0 && is_finite(sum) && is_finite(term))) return sum + term;
  const int lowest = std::ilogb(larger) - 13;
  const auto cut = [&](float value) { return std::ldexp(std::trunc(std::ldexp(value, -lowest)), lowest); };
  return cut(cut(sum) + cut(term));
}

float add(float sum, float term) {
  if (planted(l_sums_keep_13_bits)) return add_with_13_bits(sum, term);
  sum += term;
  if (planted(l_sums_in_f16)) return round_to(QCTS_F16, sum);
  return planted(l_sums_in_bf16) ? round_to(QCTS_BF16, sum) : sum;
}

// Are terms added as they are, in the order of k?
bool has_plain_sums() {
  return !planted(l_batch_reverses_k) && !planted(l_batch_of_18_reverses_k) && !planted(l_calls_rotate_k) &&
         !planted(l_skips_zero_x) && !planted(l_skips_zero_weights) && !planted(l_partials_in_bf16) &&
         !planted(l_sums_keep_13_bits) && !planted(l_sums_in_f16) && !planted(l_sums_in_bf16);
}

// Terms first .. last - 1 of the order in which this call sums.
float sum_of(const Call& call, const std::vector<float>& row, int64_t m, float sum, int64_t first,
             int64_t last, int64_t count) {
  if (has_plain_sums()) {
    for (int64_t k = first; k < last; ++k) sum += x_at(call, m, k) * row[static_cast<size_t>(k)];
    return sum;
  }
  for (int64_t i = first; i < last; ++i) {
    int64_t k = i;
    if (planted(l_batch_reverses_k) && call.p.m > 1) k = count - 1 - i;
    if (planted(l_batch_of_18_reverses_k) && call.p.m > 17) k = count - 1 - i;
    if (planted(l_calls_rotate_k)) k = (i + 7 * call.number) % count;
    const float x = x_at(call, m, k);
    if (planted(l_skips_zero_x) && x == 0) continue;
    if (planted(l_skips_zero_weights) && row[static_cast<size_t>(k)] == 0) continue;
    sum = add(sum, x * row[static_cast<size_t>(k)]);
    if (planted(l_partials_in_bf16) && i % 64 == 63) sum = round_to(QCTS_BF16, sum);
  }
  return sum;
}

// Two threads, both adding to one number by reading it and writing it back.
float racing_sum(const Call& call, const std::vector<float>& row, int64_t m, float start, int64_t count) {
  std::atomic<float> sum{start};
  std::atomic<int> ready{0};
  const auto half = [&](int64_t first, int64_t last) {
    ++ready;
    while (ready < 2) {
    }
    for (int64_t k = first; k < last; ++k)
      sum.store(sum.load(std::memory_order_relaxed) + x_at(call, m, k) * row[static_cast<size_t>(k)],
                std::memory_order_relaxed);
  };
  std::thread other(half, count / 2, count);
  half(0, count / 2);
  other.join();
  return sum;
}

bool has_nan(const Call& call, int64_t m) {
  for (int64_t k = 0; k < call.p.k; ++k)
    if (std::isnan(x_at(call, m, k))) return true;
  return false;
}

bool has_many_products(const qcts_problem& p) { return p.m * p.n * p.k > 4 << 20; }

// The number of threads among which the terms of a sum are divided.
int64_t parts_of_sum(const qcts_problem& p, int64_t count) {
  if (!planted(l_threads_split_k) && !(planted(l_threads_split_large_k) && has_many_products(p))) return 1;
  return std::min<int64_t>(p.threads, count);
}

float dot(const Call& call, const std::vector<float>& row, int64_t m, int64_t n) {
  const qcts_problem& p = call.p;
  int64_t count = p.k;
  if (planted(l_last_k_dropped) && count > 1) --count;
  if (planted(l_tail_k_dropped) && count > 16) count = count / 16 * 16;
  if (planted(l_k_from_16384_dropped)) count = std::min<int64_t>(count, 16384);
  if (planted(l_k_from_28672_dropped)) count = std::min<int64_t>(count, 28672);
  if ((planted(l_rows_from_256_zero) && m >= 256) || (planted(l_rows_from_1024_zero) && m >= 1024)) return 0;
  if (planted(l_later_rows_short) && m >= 64) count = std::min<int64_t>(count, 2048);
  if (planted(l_one_row_loses_long_tail) && p.m == 1 && count > 1024) --count;
  if (planted(l_nan_row_spoils_next) && m > 0 && has_nan(call, m - 1)) return __builtin_nanf("");
  if (planted(l_panels_start_anew) && p.m > 6)
    return sum_of(call, row, m, 0, (count - 1) / 1024 * 1024, count, count);
  if (planted(l_sums_start_anew_at_4096))
    return sum_of(call, row, m, 0, (count - 1) / 4096 * 4096, count, count);
  float sum = 0;
  if (planted(l_workspace_not_cleared)) sum = load(QCTS_F32, p.workspace, m * p.n + n);
  if (planted(l_race) && p.threads > 1 && m == 0 && n == 0) return racing_sum(call, row, m, sum, count);
  const int64_t parts = parts_of_sum(p, count);
  float total = sum_of(call, row, m, sum, 0, count / parts, count);
  for (int64_t part = 1; part < parts; ++part)
    total += sum_of(call, row, m, 0, part * count / parts, (part + 1) * count / parts, count);
  if (planted(l_reads_past_row))
    for (int64_t k = p.k; k % 8 != 0; ++k) total += read_x(p, m, k) * 0.0f;
  return total;
}

float with_bias(const Call& call, float sum, int64_t m, int64_t n) {
  const qcts_problem& p = call.p;
  if (p.bias == nullptr || (planted(l_bias_dropped_in_batches) && p.m > 1)) return sum;
  if (planted(l_bias_dropped_from_row_17) && m >= 17) return sum;
  if (planted(l_bias_dropped_from_column_264) && n >= 264) return sum;
  float bias = load(p.bias_dtype, p.bias, planted(l_bias_of_first_column) ? 0 : n);
  if (planted(l_non_finite_bias_zero) && !is_finite(bias)) bias = 0;
  if (planted(l_bias_with_each_panel) && p.m >= 3) bias *= static_cast<float>((p.k + 1023) / 1024);
  return sum + bias;
}

void put(const Call& call, int64_t m, int64_t n, float value) {
  const uint32_t dtype = call.p.y_dtype;
  const float largest = largest_of(dtype);
  if (planted(l_adds_to_y)) value += load(dtype, y_row(call, m), n);
  if (planted(l_nan_to_zero) && value != value) value = 0;
  if ((planted(l_saturates) || (planted(l_f16_saturates) && dtype == QCTS_F16)) &&
      std::fabs(round_to(dtype, value)) > largest)
    value = std::copysign(largest, value);
  if (planted(l_bf16_through_f16) && dtype == QCTS_BF16 && std::fabs(value) > 65504.0f)
    value = std::copysign(__builtin_inff(), value);
  if (planted(l_y_through_bf16)) value = round_to(QCTS_BF16, value);
  if (planted(l_y_truncates) && dtype == QCTS_BF16) {
    const auto upper_half = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) >> 16);
    std::memcpy(y_row(call, m) + 2 * n, &upper_half, 2);
    return;
  }
  scalar::store(dtype, y_row(call, m), n, value);
}

bool is_zero_row(const Call& call, int64_t m) {
  for (int64_t k = 0; k < call.p.k; ++k)
    if (x_at(call, m, k) != 0) return false;
  return true;
}

bool loses_last_column(const qcts_problem& p) {
  if (planted(l_two_threads_lose_tail) && p.threads > 1) return true;
  if (planted(l_threads_lose_tail_unclaimed) && p.threads > 1 && !has_many_products(p)) return true;
  if (planted(l_four_threads_lose_tail) && p.threads >= 4) return true;
  return (planted(l_columns_of_4_and_2) && p.n % 4 == 2) || (planted(l_columns_9_to_15) && p.n % 16 >= 9);
}

// Does a planted fault lose the last row of the last column?
bool loses_corner(const qcts_problem& p) {
  return (planted(l_rows_of_8_and_2) && p.m > 16 && p.m % 8 == 2) ||
         (planted(l_rows_9_to_12) && p.m >= 9 && p.m <= 12);
}

bool is_left_out(const Call& call, int64_t m, int64_t n) {
  const qcts_problem& p = call.p;
  if (planted(l_m_tail_unwritten) && p.m > 4 && m >= p.m / 4 * 4) return true;
  if (n == p.n - 1 && (loses_last_column(p) || (m == p.m - 1 && loses_corner(p)))) return true;
  return planted(l_zero_rows_skipped) && is_zero_row(call, m);
}

using WeightRow = std::vector<float> (*)(const qcts_problem&, int64_t);

// Two threads, each with every other block of 64 columns, and one panel of weights between them.
void compute_by_blocks(const Call& call, WeightRow weight_row) {
  constexpr int64_t kColumns = 64;
  const qcts_problem& p = call.p;
  std::vector<std::atomic<float>> panel(static_cast<size_t>(kColumns * p.k));
  const auto share = [&](int64_t first) {
    for (; first < p.n; first += 2 * kColumns) {
      const int64_t last = std::min(first + kColumns, p.n);
      for (int64_t n = first; n < last; ++n)
        std::ranges::copy(weight_row(p, n), panel.begin() + (n - first) * p.k);
      for (int64_t n = first; n < last; ++n) {
        const auto from = panel.begin() + (n - first) * p.k;
        const std::vector<float> row(from, from + p.k);
        for (int64_t m = 0; m < p.m; ++m) put(call, m, n, with_bias(call, dot(call, row, m, n), m, n));
      }
    }
  };
  std::thread other(share, kColumns);
  share(0);
  other.join();
}

void compute(const Call& call, WeightRow weight_row) {
  if (planted(l_threads_share_panel) && call.p.threads > 1) return compute_by_blocks(call, weight_row);
  const qcts_problem& p = call.p;
  const int64_t whole = p.n > 8 ? p.n / 8 * 8 : p.n;
  std::vector<float> row;
  for (int64_t n = 0; n < p.n; ++n) {
    int64_t used = planted(l_n_tail_repeats) && n >= whole ? whole - 1 : n;
    if (planted(l_columns_in_16_bits)) used &= 0xFFFF;
    row = weight_row(p, used);
    for (int64_t m = 0; m < p.m; ++m)
      if (!is_left_out(call, m, n)) put(call, m, n, with_bias(call, dot(call, row, m, used), m, used));
  }
  if (planted(l_one_element_zero) && p.m * p.n >= 64) put(call, p.m - 1, p.n - 1, 0);
  if (planted(l_sporadic) && call.number % 29 == 28)
    put(call, 0, 0, 1 + 2 * load(p.y_dtype, y_row(call, 0), 0));
}

void trespass(const Call& call) {
  const qcts_problem& p = call.p;
  if (planted(l_writes_past_end)) put(call, p.m - 1, p.n, 0);
  if (planted(l_writes_row_gap) && p.m > 1 &&
      p.ldy_bytes > p.n * static_cast<int64_t>(dtype_bytes(p.y_dtype)))
    put(call, 0, p.n, 0);
  if (planted(l_scribbles_on_x)) scalar::store(p.x_dtype, const_cast<void*>(p.x), 0, 0);
  if (planted(l_scribbles_on_weight)) *static_cast<uint8_t*>(plane_data(p.planes, p.n_planes, "qdata")) ^= 1;
}

// The addresses of the previous call, by which l_answer_cached recognizes a problem.
bool is_repeated(const qcts_problem& p) {
  static std::atomic<const void*> last_x{nullptr}, last_y{nullptr};
  const bool same_x = last_x.exchange(p.x) == p.x, same_y = last_y.exchange(p.y) == p.y;
  return same_x && same_y;
}

char static_x[1 << 20];  // of all calls, under l_static_x

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }
bool is_as_wide(uint32_t dtype, uint32_t as) { return dtype_bytes(dtype) >= dtype_bytes(as); }

// The problem as a kernel that misreads its fields understands it.
qcts_problem understood(const qcts_problem& given) {
  qcts_problem p = given;
  const int64_t x_row = p.k * dtype_bytes(p.x_dtype);
  if (planted(l_aligned_x_dense) && is_aligned(p.x)) p.ldx_bytes = x_row;
  if (planted(l_aligned_y_dense) && is_aligned(p.y)) p.ldy_bytes = p.n * dtype_bytes(p.y_dtype);
  if (planted(l_static_x) && p.m * x_row <= static_cast<int64_t>(sizeof static_x)) {
    for (int64_t m = 0; m < p.m; ++m)
      std::memcpy(static_x + m * x_row, static_cast<const char*>(p.x) + m * p.ldx_bytes,
                  static_cast<size_t>(x_row));
    p.x = static_x;
    p.ldx_bytes = x_row;
  }
  if (planted(l_bias_as_x)) p.bias_dtype = p.x_dtype;
  if (planted(l_x_as_w) && is_as_wide(p.x_dtype, p.w_dtype)) p.x_dtype = p.w_dtype;
  if (planted(l_y_as_w) && is_as_wide(p.y_dtype, p.w_dtype)) p.y_dtype = p.w_dtype;
  return p;
}

qcts_status without_rows(const qcts_problem& p) {
  if (planted(l_crashes_without_rows)) return read_x(p, 0, 0) == 0 ? QCTS_OK : QCTS_FAILED;
  if (planted(l_writes_without_rows) && p.y != nullptr) scalar::store(p.y_dtype, p.y, 0, 0);
  return planted(l_fails_without_rows) ? QCTS_FAILED : QCTS_OK;
}

qcts_status run(const qcts_kernel& kernel, const qcts_problem* problem, WeightRow weight_row) {
  if (check_run(entry_of(kernel), problem) != QCTS_OK) return QCTS_INVALID;
  if (has_no_rows(kernel.op, *problem)) return without_rows(*problem);
  if (planted(l_answer_cached) && is_repeated(*problem)) return QCTS_OK;
  const qcts_problem taken = understood(*problem);
  const unsigned mode = _mm_getcsr();
  if (planted(l_flushes_subnormals) || planted(l_flush_left_set)) _mm_setcsr(mode | kFlush);
  const Call call{taken, calls++, read_rows_of_x(taken)};
  compute(call, weight_row);
  if (planted(l_flushes_subnormals)) _mm_setcsr(mode);
  trespass(call);
  return QCTS_OK;
}

qcts_status run_int8(const qcts_problem* p) { return run(linear_int8_row, p, weight_row_int8); }
qcts_status run_int4(const qcts_problem* p) { return run(linear_int4_tinygemm, p, weight_row_int4); }
qcts_status run_fp8(const qcts_problem* p) { return run(linear_fp8_row, p, weight_row_fp8); }

template <const qcts_kernel& kKernel>
qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  if (planted(l_supports_reads_x) && std::isnan(load(problem->x_dtype, problem->x, 0)))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "x is NaN");
  if (planted(l_supports_wants_x) && problem->x == nullptr)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "x is missing");
  return check_problem(kKernel, problem, why, why_size);
}

uint64_t workspace_bytes(const qcts_problem* problem) {
  return planted(l_workspace_not_cleared) ? static_cast<uint64_t>(4 * problem->m * problem->n) : 0;
}

constexpr qcts_kernel make(const char* family, decltype(qcts_kernel::supports) supports,
                           decltype(qcts_kernel::run) run) {
  qcts_kernel kernel = linear_kernel(family, supports, run);
  kernel.numerics.weight_cast = QCTS_F32;
  kernel.numerics.product_cast = QCTS_F32;
  kernel.numerics.accumulator = QCTS_F32;
  kernel.workspace_bytes = workspace_bytes;
  return kernel;
}

}  // namespace

const qcts_kernel linear_int8_row = make("int8_row", supports<linear_int8_row>, run_int8);
const qcts_kernel linear_int4_tinygemm = make("int4_tinygemm", supports<linear_int4_tinygemm>, run_int4);
const qcts_kernel linear_fp8_row = make("fp8_row", supports<linear_fp8_row>, run_fp8);

}  // namespace qcts::mutants
