// linear of the three families: weights as float32, one multiplication and one addition of float32 a term, in
// the order of k. With the faults l_* (those of the weights stand in weights.cc).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include <xmmintrin.h>

#include "kernels/scalar.h"
#include "kernels/support.h"
#include "suites/self/mutants/faults.h"
#include "suites/self/mutants/weights.h"

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
};

float x_at(const Call& call, int64_t m, int64_t k) {
  const qcts_problem& p = call.p;
  const int64_t ld = planted(l_ldx_ignored) ? p.k * dtype_bytes(p.x_dtype) : p.ldx_bytes;
  if (planted(l_row_16_reads_row_0) && m == 16) m = 0;
  auto base = reinterpret_cast<uintptr_t>(p.x);
  if (planted(l_aligns_x_down)) base &= ~uintptr_t{15};
  const float value = load(p.x_dtype, reinterpret_cast<const char*>(base) + m * ld, k);
  return planted(l_x_as_bf16) ? round_to(QCTS_BF16, value) : value;
}

char* y_row(const Call& call, int64_t m) {
  const qcts_problem& p = call.p;
  const int64_t ld = planted(l_ldy_ignored) ? p.n * dtype_bytes(p.y_dtype) : p.ldy_bytes;
  return static_cast<char*>(p.y) + m * ld;
}

float add(float sum, float term) {
  sum += term;
  if (planted(l_sums_in_f16)) return round_to(QCTS_F16, sum);
  return planted(l_sums_in_bf16) ? round_to(QCTS_BF16, sum) : sum;
}

// Terms first .. last - 1 of the order in which this call sums.
float sum_of(const Call& call, const std::vector<float>& row, int64_t m, float sum, int64_t first,
             int64_t last, int64_t count) {
  for (int64_t i = first; i < last; ++i) {
    int64_t k = i;
    if (planted(l_batch_reverses_k) && call.p.m > 1) k = count - 1 - i;
    if (planted(l_calls_rotate_k)) k = (i + 7 * call.number) % count;
    const float x = x_at(call, m, k);
    if (planted(l_skips_zero_x) && x == 0) continue;
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

float dot(const Call& call, const std::vector<float>& row, int64_t m, int64_t n) {
  const qcts_problem& p = call.p;
  int64_t count = p.k;
  if (planted(l_last_k_dropped) && count > 1) --count;
  if (planted(l_tail_k_dropped) && count > 16) count = count / 16 * 16;
  if (planted(l_later_rows_short) && m >= 64) count = std::min<int64_t>(count, 2048);
  if (planted(l_panels_start_anew) && p.m > 6)
    return sum_of(call, row, m, 0, (count - 1) / 1024 * 1024, count, count);
  float sum = 0;
  if (planted(l_workspace_not_cleared)) sum = load(QCTS_F32, p.workspace, m * p.n + n);
  if (planted(l_race) && p.threads > 1 && m == 0 && n == 0) return racing_sum(call, row, m, sum, count);
  const int64_t parts = planted(l_threads_split_k) ? std::min<int64_t>(p.threads, count) : 1;
  float total = sum_of(call, row, m, sum, 0, count / parts, count);
  for (int64_t part = 1; part < parts; ++part)
    total += sum_of(call, row, m, 0, part * count / parts, (part + 1) * count / parts, count);
  if (planted(l_reads_past_row))
    for (int64_t k = p.k; k % 8 != 0; ++k) total += x_at(call, m, k) * 0.0f;
  return total;
}

float with_bias(const Call& call, float sum, int64_t n) {
  const qcts_problem& p = call.p;
  if (p.bias == nullptr || (planted(l_bias_dropped_in_batches) && p.m > 1)) return sum;
  return sum + load(p.bias_dtype, p.bias, planted(l_bias_of_first_column) ? 0 : n);
}

void put(const Call& call, int64_t m, int64_t n, float value) {
  const uint32_t dtype = call.p.y_dtype;
  const float largest = dtype == QCTS_F16 ? 65504.0f : dtype == QCTS_BF16 ? 0x1.FEp127f : 0x1.FFFFFEp127f;
  if (planted(l_adds_to_y)) value += load(dtype, y_row(call, m), n);
  if (planted(l_nan_to_zero) && value != value) value = 0;
  if (planted(l_saturates) && std::fabs(round_to(dtype, value)) > largest)
    value = std::copysign(largest, value);
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

bool is_left_out(const Call& call, int64_t m, int64_t n) {
  const qcts_problem& p = call.p;
  if (planted(l_m_tail_unwritten) && p.m > 4 && m >= p.m / 4 * 4) return true;
  if (planted(l_two_threads_lose_tail) && p.threads > 1 && n == p.n - 1) return true;
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
        for (int64_t m = 0; m < p.m; ++m) put(call, m, n, with_bias(call, dot(call, row, m, n), n));
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
    const int64_t used = planted(l_n_tail_repeats) && n >= whole ? whole - 1 : n;
    row = weight_row(p, used);
    for (int64_t m = 0; m < p.m; ++m)
      if (!is_left_out(call, m, n)) put(call, m, n, with_bias(call, dot(call, row, m, used), used));
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

// The addresses of the call before, which l_answer_cached takes for its problem.
bool is_repeated(const qcts_problem& p) {
  static std::atomic<const void*> last_x{nullptr}, last_y{nullptr};
  const bool same_x = last_x.exchange(p.x) == p.x, same_y = last_y.exchange(p.y) == p.y;
  return same_x && same_y;
}

qcts_status run(const qcts_kernel& kernel, const qcts_problem* problem, WeightRow weight_row) {
  if (check_run(kernel, problem) != QCTS_OK) return QCTS_INVALID;
  if (planted(l_answer_cached) && is_repeated(*problem)) return QCTS_OK;
  const Call call{*problem, calls++};
  const unsigned mode = _mm_getcsr();
  if (planted(l_flushes_subnormals) || planted(l_flush_left_set)) _mm_setcsr(mode | kFlush);
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
  return check_problem(kKernel, problem, why, why_size);
}

uint64_t workspace_bytes(const qcts_problem* problem) {
  return planted(l_workspace_not_cleared) ? static_cast<uint64_t>(4 * problem->m * problem->n) : 0;
}

constexpr qcts_kernel make(const char* family, decltype(qcts_kernel::supports) supports,
                           decltype(qcts_kernel::run) run) {
  qcts_kernel kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_LINEAR;
  kernel.scheme = family;
  kernel.variant = "scalar";
  kernel.claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT;
  kernel.numerics.struct_size = sizeof kernel.numerics;
  kernel.numerics.weight_cast = QCTS_F32;
  kernel.numerics.product_cast = QCTS_F32;
  kernel.numerics.accumulator = QCTS_F32;
  kernel.supports = supports;
  kernel.workspace_bytes = workspace_bytes;
  kernel.run = run;
  return kernel;
}

}  // namespace

const qcts_kernel linear_int8_row = make("int8_row", supports<linear_int8_row>, run_int8);
const qcts_kernel linear_int4_tinygemm = make("int4_tinygemm", supports<linear_int4_tinygemm>, run_int4);
const qcts_kernel linear_fp8_row = make("fp8_row", supports<linear_fp8_row>, run_fp8);

}  // namespace qcts::mutants
