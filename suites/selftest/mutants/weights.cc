// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/mutants/weights.h"

#include <cstring>
#include <map>
#include <mutex>

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
  const bool codes = std::strcmp(name, "qdata") == 0, zeros = std::strcmp(name, "zero_point") == 0;
  if (p.prepared != nullptr)
    return static_cast<const uint8_t*>(p.prepared) + (codes ? 5 * p.n : zeros ? 4 * p.n : 0);
  if (planted(l_planes_by_place)) return p.planes[codes ? 0 : zeros ? 2 : 1].data;
  return plane_data(p.planes, p.n_planes, name);
}

float finish(float weight) { return planted(l_weights_as_bf16) ? round_to(QCTS_BF16, weight) : weight; }

float row_scale(const qcts_problem& p, int64_t n) {
  if (planted(l8_scale_of_next_row)) n = (n + 1) % p.n;
  const float scale = load(QCTS_F32, in(p, "scale"), n);
  if (planted(l8_scale_as_bf16)) return round_to(QCTS_BF16, scale);
  if (planted(l8_scale_as_f16)) return round_to(QCTS_F16, scale);
  if (planted(l8_tiny_scale_flushed) && scale < 0x1p-100f) return 0;
  return scale;
}

int row_zero(const qcts_problem& p, int64_t n) {
  if (planted(l8_zero_point_ignored)) return 0;
  return static_cast<const int8_t*>(in(p, "zero_point"))[n] + (planted(l8_zero_point_one_up) ? 1 : 0);
}

// Returns the codes of a row. Under l_weight_cached, row 0 gets the codes that this address first held.
std::vector<uint8_t> codes_of(const qcts_problem& p, int64_t n, int64_t bytes) {
  const auto* row = static_cast<const uint8_t*>(in(p, "qdata")) + n * bytes;
  std::vector<uint8_t> codes(row, row + bytes);
  if (p.prepared != nullptr && p.m > 1)
    for (int64_t k = 0; k < bytes; ++k)
      codes[static_cast<size_t>(k)] = static_cast<const uint8_t*>(in(p, "qdata"))[k * p.n + n];
  if (!planted(l_weight_cached) || n != 0) return codes;
  static std::mutex mutex;
  static std::map<const void*, std::vector<uint8_t>> cache;
  const std::lock_guard lock(mutex);
  std::vector<uint8_t>& seen = cache[row];
  if (seen.size() < codes.size()) seen = codes;
  return seen;
}

int int4_code(const qcts_problem& p, const std::vector<uint8_t>& codes, int64_t k) {
  const uint8_t pair = codes[static_cast<size_t>(k / 2)];
  const int code = (k % 2 == 0) != planted(l4_nibbles_swapped) ? pair >> 4 : pair & 15;
  if (planted(l4_signed_nibble)) return code >= 8 ? code - 16 : code;
  (void)p;
  return code - (planted(l4_codes_one_up) ? 7 : 8);
}

int64_t int4_group(const qcts_problem& p, int64_t k) {
  const int64_t group = k / p.group;
  if (planted(l4_group_late) && group > 0 && k % p.group == 0) return group - 1;
  if (planted(l4_group_of_tile) && p.m == 1) return k / 64 * (64 / p.group);
  return group;
}

}  // namespace

uint64_t prepared_bytes(const qcts_problem* problem) {
  if (planted(l8_prepares_for_rows) && problem->m == 0) return 0;
  return static_cast<uint64_t>(problem->n * (problem->k + 5));
}

qcts_status prepare_int8(const qcts_problem* problem, void* prepared) {
  if (check_prepare(linear_int8_row, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  auto* bytes = static_cast<uint8_t*>(prepared);
  std::memcpy(bytes, in(p, "scale"), static_cast<size_t>(4 * p.n));
  std::memcpy(bytes + 4 * p.n, in(p, "zero_point"), static_cast<size_t>(p.n));
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k)
      bytes[5 * p.n + (p.m > 1 ? k * p.n + n : n * p.k + k)] =
          static_cast<const uint8_t*>(in(p, "qdata"))[n * p.k + k];
  return QCTS_OK;
}

std::vector<float> weight_row_int8(const qcts_problem& p, int64_t n) {
  const std::vector<uint8_t> codes = codes_of(p, n, p.k);
  const float scale = row_scale(p, n);
  std::vector<float> row(static_cast<size_t>(p.k));
  for (int64_t k = 0; k < p.k; ++k) {
    int difference = static_cast<int8_t>(codes[static_cast<size_t>(k)]) - row_zero(p, n);
    if (planted(l8_difference_wraps)) difference = static_cast<int8_t>(difference);
    const float used = planted(l8_scale_by_column) ? load(QCTS_F32, in(p, "scale"), k % p.n) : scale;
    row[static_cast<size_t>(k)] = finish(static_cast<float>(difference) * used);
  }
  return row;
}

std::vector<float> weight_row_int4(const qcts_problem& p, int64_t n) {
  const std::vector<uint8_t> codes = codes_of(p, n, p.k / 2);
  const int64_t groups = p.k / p.group;
  const void* pairs = in(p, "scale_and_zero");
  std::vector<float> row(static_cast<size_t>(p.k));
  for (int64_t k = 0; k < p.k; ++k) {
    const int64_t group = int4_group(p, k);
    if (planted(l4_last_group_dropped) && groups > 1 && p.k % 256 != 0 && group == groups - 1) continue;
    const int64_t place = 2 * (planted(l4_scale_transposed) ? n * groups + group : group * p.n + n);
    const float scale = load(p.w_dtype, pairs, place);
    float zero = load(p.w_dtype, pairs, planted(l4_zero_of_first_group) ? 2 * n + 1 : place + 1);
    if (planted(l4_zero_ignored)) zero = 0;
    row[static_cast<size_t>(k)] =
        finish(static_cast<float>(static_cast<double>(int4_code(p, codes, k)) * scale + zero));
  }
  return row;
}

std::vector<float> weight_row_fp8(const qcts_problem& p, int64_t n) {
  const std::vector<uint8_t> codes = codes_of(p, n, p.k);
  const float scale = load(QCTS_F32, in(p, "scale"), n);
  std::vector<float> row(static_cast<size_t>(p.k));
  for (int64_t k = 0; k < p.k; ++k) {
    const uint8_t code = codes[static_cast<size_t>(k)];
    const bool negative = (code & 0x80) != 0;
    float value = scalar::e4m3fn_to_f32(code);
    if (planted(lf8_nan_is_480) && (code & 0x7F) == 0x7F) value = negative ? -480.0f : 480.0f;
    if (planted(lf8_subnormal_codes_zero) && (code & 0x7F) < 8) value = 0;
    if (planted(lf8_fnuz_bias)) value /= 2;
    row[static_cast<size_t>(k)] = finish(value * scale);
  }
  return row;
}

}  // namespace qcts::mutants
