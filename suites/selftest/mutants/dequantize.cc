// SPDX-License-Identifier: BSD-3-Clause
// dequantize of the three families, scalar, with the faults d8_*, d4_*, df8_* and d_*.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::mutants {
namespace {

using scalar::load;
using scalar::round_to;
using enum Fault;

const void* in(const qcts_problem& p, const char* name) {
  if (planted(d8_planes_by_place))
    return p.planes[std::strcmp(name, "scale") == 0 ? 1 : std::strcmp(name, "zero_point") == 0 ? 2 : 0].data;
  return plane_data(p.planes, p.n_planes, name);
}

char* row_of(const qcts_problem& p, int64_t n) {
  const bool dense = planted(d8_rows_contiguous) ||
                     (planted(d8_aligned_rows_dense) && reinterpret_cast<uintptr_t>(p.y) % 16 == 0);
  const int64_t ld = dense ? p.k * dtype_bytes(p.w_dtype) : p.ldy_bytes;
  return static_cast<char*>(p.y) + n * ld;
}

void put(const qcts_problem& p, char* row, int64_t k, float value) {
  const float least_normal = p.w_dtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f;
  if (planted(d_flushes_subnormals) && std::fabs(round_to(p.w_dtype, value)) < least_normal)
    value = std::copysign(0.0f, value);
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  // At -O1 GCC 12.2 omits the masking if NaN is tested with isnan() or value == value.
  if (planted(d8_store_truncates) && p.w_dtype == QCTS_BF16 && (bits & 0x7FFFFFFFu) <= 0x7F800000u)
    value = __builtin_bit_cast(float, bits & 0xFFFF0000u);
  scalar::store(p.w_dtype, row, k, value);
}

constexpr int64_t kStreamedBytes = 4 << 20;

// Returns the number of elements of row n that are written.
int64_t written_elems(const qcts_problem& p, int64_t n) {
  const bool streamed = p.n * p.ldy_bytes > kStreamedBytes, last = n + 1 == p.n;
  int64_t written = planted(d8_tail_unwritten) && p.k > 8 ? p.k / 8 * 8 : p.k;
  if (planted(d8_streams_short) && streamed && last) written -= 16;
  if (planted(d8_streams_lose_seam) && streamed && p.threads > 1 && n == p.n / p.threads) written -= 16;
  if (planted(d8_elements_past_4096_unwritten)) written = std::min<int64_t>(written, 4096);
  if (planted(d8_threads_lose_tail_unclaimed) && p.threads > 1 && last && !streamed) --written;
  if (planted(d8_four_threads_lose_tail) && p.threads >= 4 && last) --written;
  return written;
}

qcts_status run_int8(const qcts_problem* problem) {
  if (check_run(dequantize_int8_row, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  const auto* codes = static_cast<const int8_t*>(in(p, "qdata"));
  for (int64_t n = 0; n < p.n; ++n) {
    const int64_t from = planted(d8_rows_in_16_bits) ? n & 0xFFFF : n;
    const int zero =
        planted(d8_zero_point_ignored) ? 0 : static_cast<const int8_t*>(in(p, "zero_point"))[from];
    float scale = load(QCTS_F32, in(p, "scale"), from);
    if (planted(d8_scale_as_bf16)) scale = round_to(QCTS_BF16, scale);
    if (planted(d8_rows_from_65535_zero) && n >= 65535) scale = 0;
    for (int64_t k = 0; k < written_elems(p, n); ++k) {
      int difference = codes[from * p.k + k] - zero;
      if (planted(d8_difference_wraps)) difference = static_cast<int8_t>(difference);
      put(p, row_of(p, n), k, static_cast<float>(difference) * scale);
    }
    if (planted(d8_writes_whole_vectors))
      for (int64_t k = p.k; k % 8 != 0; ++k) put(p, row_of(p, n), k, 0);
  }
  return QCTS_OK;
}

// Code minus 8 of nibble k of a row.
int centred_code(const uint8_t* row, int64_t k) {
  const bool high = (k % 2 == 0) != planted(d4_nibbles_swapped);
  const int code = high ? row[k / 2] >> 4 : row[k / 2] & 15;
  if (planted(d4_signed_nibble)) return code >= 8 ? code - 16 : code;
  if (!planted(d4_swar_borrow)) return code - 8;
  uint32_t word;
  std::memcpy(&word, row + k / 8 * 4, 4);
  word -= 0x88888888u;
  const int64_t nibble = 2 * (k % 8 / 2) + (k % 2 == 0 ? 1 : 0);
  const int lane = static_cast<int>(word >> 4 * nibble & 15);
  return lane >= 8 ? lane - 16 : lane;
}

float int4_value(uint32_t dtype, int code, float scale, float zero) {
  if (planted(d4_two_roundings)) return round_to(dtype, static_cast<float>(code) * scale) + zero;
  const double sum = scalar::add_to_odd(static_cast<double>(code) * scale, zero);
  return dtype == QCTS_F32 ? static_cast<float>(sum) : scalar::round_to_odd(sum);
}

qcts_status run_int4(const qcts_problem* problem) {
  if (check_run(dequantize_int4_tinygemm, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k) {
      int64_t group = k / p.group;
      if (planted(d4_group_late) && group > 0 && k % p.group == 0) --group;
      const int64_t place = 2 * (group * p.n + n);
      float scale = load(p.w_dtype, in(p, "scale_and_zero"), place);
      float zero = load(p.w_dtype, in(p, "scale_and_zero"), place + 1);
      if (planted(d4_pair_swapped)) std::swap(scale, zero);
      if (planted(d4_zero_ignored)) zero = 0;
      const int code = centred_code(static_cast<const uint8_t*>(in(p, "qdata")) + n * p.k / 2, k);
      put(p, row_of(p, n), k, int4_value(p.w_dtype, code, scale, zero));
    }
  return QCTS_OK;
}

float fp8_value(uint8_t code) {
  if (planted(df8_subnormal_codes_zero) && (code & 0x7F) < 8) return code & 0x80 ? -0.0f : 0.0f;
  if (planted(df8_nan_is_480) && (code & 0x7F) == 0x7F) return code & 0x80 ? -480.0f : 480.0f;
  if (planted(df8_minus_zero) && code == 0x80) return 0.0f;
  return scalar::e4m3fn_to_f32(code);
}

qcts_status run_fp8(const qcts_problem* problem) {
  if (check_run(dequantize_fp8_row, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  for (int64_t n = 0; n < p.n; ++n) {
    const float scale = load(QCTS_F32, in(p, "scale"), n);
    for (int64_t k = 0; k < p.k; ++k)
      put(p, row_of(p, n), k, fp8_value(static_cast<const uint8_t*>(in(p, "qdata"))[n * p.k + k]) * scale);
  }
  return QCTS_OK;
}

}  // namespace

const qcts_kernel dequantize_int8_row =
    exact_kernel(QCTS_OP_DEQUANTIZE, "int8_row", supports_problem<dequantize_int8_row>, run_int8);
const qcts_kernel dequantize_int4_tinygemm =
    exact_kernel(QCTS_OP_DEQUANTIZE, "int4_tinygemm", supports_problem<dequantize_int4_tinygemm>, run_int4);
const qcts_kernel dequantize_fp8_row =
    exact_kernel(QCTS_OP_DEQUANTIZE, "fp8_row", supports_problem<dequantize_fp8_row>, run_fp8);

}  // namespace qcts::mutants
