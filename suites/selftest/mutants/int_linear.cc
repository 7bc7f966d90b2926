// SPDX-License-Identifier: BSD-3-Clause
// linear with x in integer codes: int8_row with one scale per row of x (W8A8), and intx with an asymmetric
// row of x (8da4w). Integers are summed as in a kernel with 8-bit products: x in 0 .. 255 and signed weights.
// Subtracts again what the shift of x adds. Scales act in double. With the faults w8_* and da_*
// (int_codes.cc has the faults in choosing codes).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "suites/selftest/mutants/codes.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/more.h"

namespace qcts::mutants {
namespace {

using scalar::load;
using scalar::round_to;
using enum Fault;

std::atomic<int64_t> int_calls{0};

struct IntX {
  std::vector<int> codes;  // [m, k]
  std::vector<IntScale> rows;
};

bool is_token(const qcts_problem& p) { return std::strcmp(p.activation, "dyn_token_asym") == 0; }

IntX int_x(const qcts_problem& p) {
  const IntRecipe recipe = is_token(p) ? token_recipe(p) : int8_recipe(p);
  const std::vector<float> all = rows_of_x(p);
  IntX x;
  for (int64_t m = 0; m < p.m; ++m) {
    const std::span<const float> row =
        std::span(all).subspan(static_cast<size_t>(m * p.k), static_cast<size_t>(p.k));
    x.rows.push_back(scale_of_x(recipe, p, row));
    const bool tiny = planted(w8_tiny_rows_zero) &&
                      std::ranges::all_of(row, [](float value) { return std::fabs(value) < 1e-3f; });
    for (const float value : row)
      x.codes.push_back(tiny ? x.rows.back().zero : int_code(recipe, x.rows.back(), value));
  }
  return x;
}

// The scales of the previous call, at every third call with the same number of rows.
void remember(IntX& x) {
  static std::mutex mutex;
  static std::vector<IntScale> before;
  const std::lock_guard lock(mutex);
  std::vector<IntScale> now = x.rows;
  if (++int_calls % 3 == 0 && before.size() == now.size()) x.rows = before;
  before = std::move(now);
}

struct Side {
  const qcts_problem& p;
  const int* x;  // of the row
  const int8_t* w;
  int zero_x, zero_w;
};

int weight_code(const Side& s, int64_t k) {
  return planted(da_three_bits_unsigned) && scheme_params(s.p).bits == 3 ? s.w[k] & 7 : s.w[k];
}

// sum (x + 128) * w of elements first .. last - 1, two products at a time.
double products(const Side& s, int64_t first, int64_t last) {
  int64_t sum = 0;
  float narrow = 0;
  for (int64_t k = first; k < last; k += 2) {
    int64_t pair =
        (s.x[k] + 128) * weight_code(s, k) + (k + 1 < last ? (s.x[k + 1] + 128) * weight_code(s, k + 1) : 0);
    const int64_t added = 128 * (weight_code(s, k) + (k + 1 < last ? weight_code(s, k + 1) : 0));
    if (planted(w8_signed_pairs_saturate)) pair = std::min<int64_t>(pair - added, 32767) + added;
    if (planted(w8_pairs_saturate)) pair = std::clamp<int64_t>(pair, -32768, 32767);
    if (planted(w8_last_odd_k_dropped) && k + 1 == last) pair = 128 * weight_code(s, k);
    if (planted(w8_restarts_at_1024) && (k - first) % 1024 == 0) sum = 0;
    if (planted(w8_restarts_at_4096) && (k - first) % 4096 == 0) sum = 0;
    sum += pair;
    narrow += static_cast<float>(pair);
    if (planted(w8_sums_wrap_at_24_bits)) sum = ((sum + (1 << 23)) & 0xFFFFFF) - (1 << 23);
  }
  return planted(w8_sums_in_float32) ? narrow : static_cast<double>(sum);
}

// sum (x - zero_x) * (w - zero_w)
double group_sum(const Side& s, int64_t first, int64_t last) {
  if (planted(w8_k_from_28672_dropped)) last = std::min<int64_t>(last, 28672);
  int64_t sum_x = 0, sum_w = 0, end = last;
  if (planted(w8_weight_sum_of_padded_row)) end = std::min(s.p.k + 31, (last + 31) / 32 * 32);
  for (int64_t k = first; k < last; ++k) sum_x += s.x[k];
  for (int64_t k = first; k < end; ++k) sum_w += weight_code(s, k);
  const double count = static_cast<double>(last - first);
  double sum = products(s, first, last) - 128.0 * static_cast<double>(sum_w);
  const double of_x = planted(w8_x_zero_ignored) ? 0 : s.zero_x;
  if (planted(da_x_zero_by_first_group) && first > 0) sum_w = 0;
  sum -= of_x * static_cast<double>(sum_w);
  if (planted(w8_weight_zero_ignored)) return sum;
  sum -= static_cast<double>(s.zero_w) * static_cast<double>(sum_x);
  return planted(w8_zero_product_left_out) ? sum : sum + count * of_x * s.zero_w;
}

double row_sum(const Side& of_row, const qcts_problem& p, int64_t n) {
  const int64_t length = is_token(p) && p.group != 0 ? p.group : p.k, groups = p.k / length;
  const uint32_t dtype = plane_dtype(p.planes, p.n_planes, "scale");
  const void* scales = plane_data(p.planes, p.n_planes, "scale");
  const auto* zeros = static_cast<const int8_t*>(plane_data(p.planes, p.n_planes, "zero_point"));
  double total = 0;
  for (int64_t g = 0; g < groups; ++g) {
    Side s = of_row;
    s.zero_w = zeros[n * groups + g - (planted(da_zero_of_group_before) && g > 0 ? 1 : 0)];
    double sum = group_sum(s, g * length, (g + 1) * length);
    if (planted(da_group_sums_as_bf16)) sum = round_to(QCTS_BF16, static_cast<float>(sum));
    int64_t at = n * groups + g;
    if (planted(w8_columns_past_256_wrap) && n >= 256) at -= 256;
    if (planted(w8_one_row_past_256_wraps) && p.m == 1 && n >= 256) at -= 256;
    if (planted(da_last_of_many_groups) && groups > 4 && g == groups - 1) --at;
    float scale = load(dtype, scales, at);
    if (planted(da_wide_scale_narrowed)) scale = round_to(p.w_dtype, scale);
    total += sum * scale;
  }
  return total;
}

double finish_int(const qcts_problem& p, double sum, IntScale x, int64_t n) {
  const float scale =
      load(plane_dtype(p.planes, p.n_planes, "scale"), plane_data(p.planes, p.n_planes, "scale"), n);
  const double product = static_cast<double>(x.scale) * scale;
  double value = sum * x.scale;
  if (planted(w8_scales_multiplied_in_f16))
    value = sum / scale * round_to(QCTS_F16, static_cast<float>(product));
  if (p.bias == nullptr) return value;
  const double bias = load(p.bias_dtype, p.bias, n);
  return value + (planted(w8_bias_in_steps) ? std::nearbyint(bias / product) * product : bias);
}

bool is_unwritten(const qcts_problem& p, int64_t m, int64_t n) {
  if (n != p.n - 1) return false;
  if (planted(w8_threads_lose_tail_unclaimed) && p.threads > 1 && p.m * p.n * p.k <= 4 << 20) return true;
  return planted(w8_rows_9_to_12) && p.m >= 9 && p.m <= 12 && m == p.m - 1;
}

void sum_rows(const qcts_problem& p, const IntX& x) {
  const auto* weight = static_cast<const int8_t*>(plane_data(p.planes, p.n_planes, "qdata"));
  for (int64_t m = 0; m < p.m; ++m) {
    int64_t scale_of = m;
    if (planted(w8_rows_past_32_wrap) && m >= 32) scale_of = m - 32;
    if (planted(w8_rows_from_512_repeat) && m >= 512) scale_of = m - 512;
    if (planted(w8_scale_of_row_before) && m > 0) scale_of = m - 1;
    IntScale chosen = x.rows[static_cast<size_t>(scale_of)];
    if (planted(w8_x_zero_of_first_row)) chosen.zero = x.rows[0].zero;
    for (int64_t n = 0; n < p.n; ++n) {
      if (is_unwritten(p, m, n)) continue;
      int64_t from = n;
      if (planted(w8_three_threads_lose_columns) && p.threads == 3 && n >= p.n / 3 * 3) from = n - 1;
      const Side side = {p, x.codes.data() + m * p.k, weight + from * p.k, chosen.zero, 0};
      const double value = finish_int(p, row_sum(side, p, from), chosen, from);
      scalar::store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n, value);
    }
  }
}

void sum_unquantized(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = 0; n < p.n; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const auto* zeros = static_cast<const int8_t*>(plane_data(p.planes, p.n_planes, "zero_point"));
        const int code =
            static_cast<const int8_t*>(plane_data(p.planes, p.n_planes, "qdata"))[n * p.k + k] - zeros[n];
        sum += static_cast<double>(all[static_cast<size_t>(m * p.k + k)]) * code;
      }
      sum *= load(QCTS_F32, plane_data(p.planes, p.n_planes, "scale"), n);
      scalar::store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n,
                           finish_int(p, sum, {1, 0}, n));
    }
}

template <const qcts_kernel& kKernel>
qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  if (!lists_policy(kKernel.scheme, problem->activation))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy");
  qcts_problem copy = *problem;
  copy.activation = "weight_only";
  return check_problem(kKernel, &copy, why, why_size);
}

template <const qcts_kernel& kKernel>
qcts_status run(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  if (supports<kKernel>(problem, nullptr, 0) != QCTS_OK || p.n_planes == 0) return QCTS_INVALID;
  if (p.m == 0) return QCTS_OK;
  if (p.x == nullptr || p.y == nullptr) return QCTS_INVALID;
  if (planted(w8_x_as_it_is)) {
    sum_unquantized(p);
    return QCTS_OK;
  }
  IntX x = int_x(p);
  if (planted(w8_third_call_remembers)) remember(x);
  sum_rows(p, x);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel>
constexpr qcts_kernel make(const char* scheme) {
  qcts_kernel kernel = linear_kernel(scheme, supports<kKernel>, run<kKernel>);
  kernel.numerics.accumulator = QCTS_I32;
  kernel.numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  return kernel;
}

}  // namespace

const qcts_kernel linear_int8_row_dyn = make<linear_int8_row_dyn>(kInt8X);
const qcts_kernel linear_intx_dyn = make<linear_intx_dyn>("intx:dyn_token_asym");

}  // namespace qcts::mutants
