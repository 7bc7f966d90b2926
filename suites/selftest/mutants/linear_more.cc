// SPDX-License-Identifier: BSD-3-Clause
// linear of the schemes of more.h with x as it is, and of them and fp8_row with x in float codes: sums in
// double, in the order of k. With the faults lmd_*, lnd_*, lfd_*, and those of l..._* that touch no single
// weight.
#include <algorithm>
#include <cmath>
#include <cstring>

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

using Xs = std::vector<double>;  // [m, k]

Xs plain_x(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  return Xs(all.begin(), all.end());
}

double most_of(const double* x, int64_t count) {
  double most = 0;
  for (int64_t k = 0; k < count; ++k) most = std::max(most, std::fabs(x[k]));
  return most;
}

bool many_need_more(const double* x, int64_t count, double step) {
  return std::count_if(x, x + count,
                       [&](double each) { return std::nearbyint(each / step) * step != each; }) *
             8 >
         count;
}

// x as it is. The faults that keep x in fixed point round it, with one step per group.
Xs int4_x(const qcts_problem& p) {
  Xs xs = plain_x(p);
  for (size_t at = 0; at < xs.size(); at += static_cast<size_t>(p.group)) {
    const double most = most_of(&xs[at], p.group);
    if (most == 0 || !std::isfinite(most)) continue;
    const double step = std::ldexp(1.0, std::ilogb(most) - 30);
    const bool rounded = planted(lip_x_in_32_bits) ||
                         (planted(lip_many_small_lost) && many_need_more(&xs[at], p.group, step * 0x1p16));
    for (size_t k = at; k < at + static_cast<size_t>(p.group); ++k) {
      if (rounded) xs[k] = std::nearbyint(xs[k] / step) * step;
      if (planted(lip_tiny_x_is_zero) && most < 0x1p-96) xs[k] = 0;
    }
  }
  return xs;
}

std::span<const float> block_of(const std::vector<float>& all, int64_t b, int64_t length) {
  return std::span(all).subspan(static_cast<size_t>(b * length), static_cast<size_t>(length));
}

Xs mx_x(const qcts_problem& p) {
  if (planted(lmd_x_as_it_is)) return plain_x(p);
  const std::vector<float> all = rows_of_x(p);
  Xs xs;
  double before = 1;
  for (int64_t b = 0; b < p.m * p.k / 32; ++b) {
    uint8_t codes[32];
    const double scale = scalar::e8m0_to_f32(mx_block(p, block_of(all, b, 32), false, codes));
    const double used = planted(lmd_x_scale_of_block_before) && b % (p.k / 32) != 0 ? before : scale;
    before = scale;
    for (const uint8_t code : codes) xs.push_back(mx_value(p, code) * used);
  }
  return xs;
}

Xs nvfp4_x(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  const bool one_level = std::strcmp(p.activation, "dyn_block16") == 0;
  const bool given = std::strcmp(p.activation, "static_tensor_block16") == 0;
  const float whole = given ? load(QCTS_F32, plane_data(p.planes, p.n_planes, "act_per_tensor_scale"), 0)
                      : planted(lnd_whole_of_row) ? nvfp4_whole(block_of(all, 0, p.k))
                                                  : nvfp4_whole(all);
  Xs xs;
  for (int64_t b = 0; b < p.m * p.k / 16; ++b) {
    uint8_t codes[16];
    double scale =
        scalar::e4m3fn_to_f32(nvfp4_block(block_of(all, b, 16), one_level ? nullptr : &whole, codes));
    if (!one_level && !planted(lnd_x_whole_left_out)) scale *= whole;
    for (const uint8_t code : codes) xs.push_back(scalar::small_to_f32(code, 2, 1) * scale);
  }
  return xs;
}

Xs fp8_x(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  std::vector<uint8_t> codes(static_cast<size_t>(p.k));
  Xs xs;
  float scale = 0;
  for (int64_t m = 0; m < p.m; ++m) {
    const float chosen = fp8_row(p, block_of(all, m, p.k), codes.data());
    if (!planted(lfd_scale_of_first_row) || m == 0) scale = chosen;
    const bool nothing = planted(lfd_zero_row_is_zero) && chosen == 0;
    for (const uint8_t code : codes)
      xs.push_back(nothing ? 0 : static_cast<double>(scalar::e4m3fn_to_f32(code)) * scale);
  }
  return xs;
}

// Returns what the zeros add to y. Under lip_zero_sums_as_bf16, it is computed from the sum of x in each
// group.
double zero_part(const qcts_problem& p, const Term* row, const double* x) {
  double sum = 0, of_group = 0;
  for (int64_t k = 0; k < p.k; ++k) {
    if (row[k].zero == 0) continue;
    if (!planted(lip_zero_sums_as_bf16)) {
      sum += x[k] * row[k].zero;
      continue;
    }
    of_group += x[k];
    if ((k + 1) % p.group != 0) continue;
    sum += round_to(QCTS_BF16, static_cast<float>(of_group)) * row[k].zero;
    of_group = 0;
  }
  return sum;
}

// Sums 64 products at a time of codes from 0 to 15, in two sums of 16 bits. The unit of x is a 127th of the
// largest x of the group.
double saturated(const qcts_problem& p, const Term* row, const double* x) {
  double sum = 0;
  for (int64_t k = 0; k < p.k;) {
    const double most = most_of(x + k / p.group * p.group, p.group) * 2 * 32767 / 127, scale = row[k].scale;
    double of_64 = 0, of_x = 0;
    do {
      of_64 += x[k] * (row[k].code + 8);
      of_x += x[k];
      ++k;
    } while (k % 64 != 0 && k % p.group != 0);
    sum += (std::clamp(of_64, -most, most) - 8 * of_x) * scale;
  }
  return sum;
}

double dot(const qcts_problem& p, const Term* row, const double* x) {
  double sum = 0;
  if (planted(lip_sums_saturate)) return saturated(p, row, x) + zero_part(p, row, x);
  for (int64_t k = 0; k < p.k; ++k) {
    if (planted(lnv_restarts_at_1024) && k % 1024 == 0) sum = 0;
    sum += x[k] * (row[k].code * row[k].scale);
    if (planted(lmx_sum_as_f16_each_block) && k % 32 == 31) sum = round_to(QCTS_F16, static_cast<float>(sum));
  }
  return sum + zero_part(p, row, x);
}

// tinyq_w8a16 adds the bias after the scale; one kernel adds it before.
double finish(const qcts_problem& p, double sum, const Term& term, int64_t n) {
  if (p.bias == nullptr) return sum;
  const double bias = load(p.bias_dtype, p.bias, n);
  return sum + (planted(ltq_bias_before_scale) ? bias * term.scale : bias);
}

template <const qcts_kernel& kKernel>
qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const char* policies = std::strchr(kKernel.scheme, ':');
  if (policies == nullptr) return check_problem(kKernel, problem, why, why_size);
  if (problem->activation == nullptr || std::strstr(policies, problem->activation) == nullptr)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy");
  qcts_problem copy = *problem;
  copy.activation = "weight_only";
  return check_problem(kKernel, &copy, why, why_size);
}

template <const qcts_kernel& kKernel, Term (*kTerm)(const qcts_problem&, int64_t, int64_t),
          Xs (*kX)(const qcts_problem&)>
qcts_status run(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  if (supports<kKernel>(problem, nullptr, 0) != QCTS_OK || p.n_planes == 0) return QCTS_INVALID;
  if (p.m == 0) return QCTS_OK;
  if (p.x == nullptr || p.y == nullptr) return QCTS_INVALID;
  const Xs xs = kX(p);
  std::vector<Term> row(static_cast<size_t>(p.k));
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t k = 0; k < p.k; ++k) row[static_cast<size_t>(k)] = kTerm(p, n, k);
    for (int64_t m = 0; m < p.m; ++m) {
      const int64_t from = planted(lnf_rows_past_8_repeat) && m > 8 ? 8 : m;
      scalar::store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n,
                           finish(p, dot(p, row.data(), xs.data() + from * p.k), row[0], n));
    }
  }
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, Term (*kTerm)(const qcts_problem&, int64_t, int64_t),
          Xs (*kX)(const qcts_problem&)>
constexpr qcts_kernel make(const char* scheme, bool batch_invariant = true) {
  qcts_kernel kernel = linear_kernel(scheme, supports<kKernel>, run<kKernel, kTerm, kX>);
  if (!batch_invariant) kernel.claims &= ~uint32_t{QCTS_CLAIM_BATCH_INVARIANT};
  kernel.numerics.product_cast = QCTS_F64;
  kernel.numerics.accumulator = QCTS_F64;
  return kernel;
}

}  // namespace

const qcts_kernel linear_mx = make<linear_mx, mx_term, plain_x>("mx");
const qcts_kernel linear_nvfp4 = make<linear_nvfp4, nvfp4_term, plain_x>("nvfp4");
const qcts_kernel linear_nf4 = make<linear_nf4, nf4_term, plain_x>("nf4");
const qcts_kernel linear_intx = make<linear_intx, intx_term, plain_x>("intx");
const qcts_kernel linear_int4_plain = make<linear_int4_plain, int4_plain_term, int4_x>("int4_plain");
const qcts_kernel linear_tinyq = make<linear_tinyq, tinyq_term, plain_x>("tinyq");
const qcts_kernel linear_fp8_sparse24 = make<linear_fp8_sparse24, fp8_sparse24_term, plain_x>("fp8_sparse24");
const qcts_kernel linear_mx_dyn = make<linear_mx_dyn, mx_term, mx_x>("mx:dyn_block32");
const qcts_kernel linear_nvfp4_dyn = make<linear_nvfp4_dyn, nvfp4_term, nvfp4_x>(
    "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", false);
const qcts_kernel linear_fp8_row_dyn = make<linear_fp8_row_dyn, fp8_row_term, fp8_x>("fp8_row:dyn_row");

}  // namespace qcts::mutants
