// SPDX-License-Identifier: BSD-3-Clause
// Values of single weights of mx, nvfp4, nf4, intx, int4_plain and tinyq, and dequantize of these schemes.
// With the faults of dequantize (d..._*), and those of linear (l..._*) that affect a single weight.
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

template <class Element = void>
const Element* source(const qcts_problem& p, const char* name) {
  return static_cast<const Element*>(plane_data(p.planes, p.n_planes, name));
}

uint8_t nibble(const qcts_problem& p, const char* name, int64_t index, bool even_low) {
  const uint8_t pair = source<uint8_t>(p, name)[index / 2];
  return (index % 2 == 0) == even_low ? pair & 15 : pair >> 4;
}

int64_t group_length(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }

float e8m0(uint8_t byte) {
  if (byte == 255 && (planted(dmx_nan_scale_is_infinity) || planted(lmx_nan_scale_is_infinity)))
    return __builtin_inff();
  if (byte == 0 && (planted(dmx_least_scale_is_zero) || planted(lmx_least_scale_is_zero))) return 0;
  return scalar::e8m0_to_f32(planted(lmx_scale_held_at_2_15) && byte > 142 && byte < 255 ? 142 : byte);
}

}  // namespace

Term mx_term(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t index = n * p.k + k, across = p.k / 32;
  const uint8_t code = mx_pairs(p) ? nibble(p, "qdata", index, !planted(dmx_nibbles_swapped))
                                   : source<uint8_t>(p, "qdata")[index];
  int64_t block = index / 32;
  if (planted(lmx_scales_transposed)) block = k / 32 * p.n + n;
  if (planted(lmx_last_block_dropped) && across % 2 == 1 && across > 1 && k / 32 == across - 1)
    return {0, 0, 0};
  const Term term = {mx_value(p, code), e8m0(source<uint8_t>(p, "scale")[block]), 0};
  if (!planted(lmx_scale_added_to_exponent)) return term;
  const uint32_t bits = __builtin_bit_cast(uint32_t, static_cast<float>(term.code));
  const uint32_t steps = source<uint8_t>(p, "scale")[block] - 127u;
  return {bits == 0 ? 0 : __builtin_bit_cast(float, bits + (steps << 23)), 1, 0};
}

Term nvfp4_term(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t index = n * p.k + k;
  int64_t block = index / 16;
  if (planted(lnv_scale_of_pair)) block = block / 2 * 2;
  const uint8_t byte = source<uint8_t>(p, "scale")[block];
  float scale = scalar::e4m3fn_to_f32(byte);
  if (planted(dnv_nan_scale_is_480) && (byte & 0x7F) == 0x7F) scale = byte & 0x80 ? -480.0f : 480.0f;
  if (planted(lnv_subnormal_scale_zero) && (byte & 0x78) == 0) scale = 0;
  if (planted(lnv_negative_scale_positive)) scale = std::fabs(scale);
  const double code = scalar::small_to_f32(nibble(p, "qdata", index, true), 2, 1);
  if (source(p, "per_tensor_scale") == nullptr || planted(dnv_whole_ignored)) return {code, scale, 0};
  const float whole = load(QCTS_F32, source(p, "per_tensor_scale"), 0);
  if (planted(dnv_whole_last)) return {static_cast<float>(code) * scale, whole, 0};
  if (p.op == QCTS_OP_DEQUANTIZE) return {code, whole * scale, 0};
  if (planted(lnv_scales_as_bf16)) return {code, round_to(QCTS_BF16, whole * scale), 0};
  return {code, static_cast<double>(whole) * scale * (planted(lnv_whole_twice) ? whole : 1), 0};
}

Term nf4_term(const qcts_problem& p, int64_t n, int64_t k) {
  const uint32_t dtype = p.w_dtype;
  const int64_t index = n * p.k + k;
  int64_t block = index / 64;
  if (planted(lnf_scaler_of_row_block)) block = k / 64;
  int64_t factor_block = block / 256;
  if (planted(dnf_first_factor) || planted(lnf_first_factor)) factor_block = 0;
  const int8_t scaler = source<int8_t>(p, "quantized_scalers")[block];
  const float number = planted(dnf_scaler_unsigned) ? static_cast<float>(static_cast<uint8_t>(scaler))
                                                    : static_cast<float>(scaler);
  const float mean =
      planted(dnf_mean_ignored) || planted(lnf_mean_ignored) ? 0 : load(dtype, source(p, "scaler_mean"), 0);
  float centred = number / load(dtype, source(p, "quantization_factor"), factor_block);
  if (!planted(dnf_scaler_unrounded)) centred = round_to(dtype, centred);
  const uint8_t code = nibble(p, "quantized_data", index, planted(dnf_nibbles_swapped));
  float value = load(dtype, source(p, "nf4"), code);
  // bitsandbytes' own entry, to seven digits
  if (planted(dnf_own_table) && code == 9) value = 0.1609302f;
  if (planted(lnf_own_table)) {
    constexpr float kOwn[] = {-1.0f,       -0.6961928f, -0.5250731f, -0.3949175f, -0.2844414f, -0.1847734f,
                              -0.0910500f, 0.0f,        0.0795803f,  0.1609302f,  0.2461123f,  0.3379152f,
                              0.4407098f,  0.5626170f,  0.7229568f,  1.0f};
    value = kOwn[code];
  }
  return {value, planted(lnf_mean_unrounded) ? centred + mean : round_to(dtype, centred + mean), 0};
}

Term intx_term(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t groups = p.k / group_length(p), group = n * groups + k / group_length(p);
  const uint32_t dtype = plane_dtype(p.planes, p.n_planes, "scale");
  int code = source<int8_t>(p, "qdata")[n * p.k + k];
  if ((planted(dix_two_bits_unsigned) && scheme_params(p).bits == 2) ||
      (planted(lix_three_bits_unsigned) && scheme_params(p).bits == 3))
    code &= scheme_params(p).bits == 2 ? 3 : 7;
  int64_t zero_group = group;
  if ((planted(dix_zero_of_group_before) || planted(lix_zero_of_group_before)) && k >= group_length(p))
    --zero_group;
  int difference = code - source<int8_t>(p, "zero_point")[zero_group];
  if (planted(dix_difference_wraps)) difference = static_cast<int8_t>(difference);
  int64_t scale_group = group;
  if (planted(lix_group_256_as_128) && p.group == 256 && k % 256 >= 128 && k + 128 < p.k) ++scale_group;
  float scale = load(dtype, source(p, "scale"), scale_group);
  if (planted(dix_wide_scale_narrowed) || planted(lix_wide_scale_narrowed))
    scale = round_to(p.w_dtype, scale);
  return {static_cast<double>(difference), scale, 0};
}

Term int4_plain_term(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t group = k / p.group, groups = p.k / p.group;
  int64_t at = group * p.n + n;
  if (planted(dip_scales_transposed)) at = n * groups + group;
  const uint8_t bits = nibble(p, "qdata", n * p.k + k, true);
  const int code = planted(dip_offset_codes) ? bits - 8 : bits >= 8 ? bits - 16 : bits;
  int64_t zero_at = at;
  if (planted(lip_zero_of_group_before) && group > 0) zero_at -= p.n;
  if (planted(lip_columns_past_256_wrap) && n >= 256) zero_at -= 256;
  if (planted(lip_one_row_past_512_wraps) && p.m == 1 && n >= 512) zero_at -= 512;
  const float scale = load(p.w_dtype, source(p, "scale"), at);
  const float zero = load(p.w_dtype, source(p, "zero_point"), zero_at);
  return {static_cast<double>(code), scale, zero};
}

Term tinyq_term(const qcts_problem& p, int64_t n, int64_t k) {
  int code = source<int8_t>(p, "int8_weights")[n * p.k + k];
  if ((planted(dtq_zero_point_used) || planted(ltq_zero_point_used)) && source(p, "zero_points") != nullptr) {
    int32_t zero;
    std::memcpy(&zero, source<char>(p, "zero_points") + 4 * n, 4);
    code -= zero;
  }
  if (planted(ltq_minus_128_is_128) && code == -128) code = 128;
  return {static_cast<double>(code), load(p.w_dtype, source(p, "scales"), n), 0};
}

Term fp8_row_term(const qcts_problem& p, int64_t n, int64_t k) {
  return {scalar::e4m3fn_to_f32(source<uint8_t>(p, "qdata")[n * p.k + k]),
          load(QCTS_F32, source(p, "scale"), n), 0};
}

namespace {

void store_sum(const qcts_problem& p, char* row, int64_t k, const Term& term) {
  const auto code = static_cast<float>(term.code), scale = static_cast<float>(term.scale),
             zero = static_cast<float>(term.zero);
  if (planted(dip_two_roundings))
    scalar::store(p.w_dtype, row, k, round_to(p.w_dtype, code * scale) + zero);
  else if (p.w_dtype == QCTS_F32)
    scalar::store(QCTS_F32, row, k, std::fma(code, scale, zero));
  else
    scalar::store_double(p.w_dtype, row, k, scalar::add_to_odd(term.code * term.scale, term.zero));
}

template <const qcts_kernel& kKernel, Term (*kTerm)(const qcts_problem&, int64_t, int64_t), bool kHasZero>
qcts_status run(const qcts_problem* problem) {
  if (check_run(kKernel, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  for (int64_t n = 0; n < p.n; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const Term term = kTerm(p, n, k);
      if (kHasZero)
        store_sum(p, row, k, term);
      else
        scalar::store(p.w_dtype, row, k, static_cast<float>(term.code) * static_cast<float>(term.scale));
    }
  }
  return QCTS_OK;
}

template <const qcts_kernel& kKernel>
qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return check_problem(kKernel, problem, why, why_size);
}

template <const qcts_kernel& kKernel, Term (*kTerm)(const qcts_problem&, int64_t, int64_t),
          bool kHasZero = false>
constexpr qcts_kernel make(const char* family) {
  return exact_kernel(QCTS_OP_DEQUANTIZE, family, supports<kKernel>, run<kKernel, kTerm, kHasZero>);
}

}  // namespace

const qcts_kernel dequantize_mx = make<dequantize_mx, mx_term>("mx");
const qcts_kernel dequantize_nvfp4 = make<dequantize_nvfp4, nvfp4_term>("nvfp4");
const qcts_kernel dequantize_nf4 = make<dequantize_nf4, nf4_term>("nf4");
const qcts_kernel dequantize_intx = make<dequantize_intx, intx_term>("intx");
const qcts_kernel dequantize_int4_plain = make<dequantize_int4_plain, int4_plain_term, true>("int4_plain");
const qcts_kernel dequantize_tinyq = make<dequantize_tinyq, tinyq_term>("tinyq");
const qcts_kernel dequantize_fp8_sparse24 = make<dequantize_fp8_sparse24, fp8_sparse24_term>("fp8_sparse24");

}  // namespace qcts::mutants
