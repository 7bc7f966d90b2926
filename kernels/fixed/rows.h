// SPDX-License-Identifier: BSD-3-Clause
// Rows of x in fixed point, for `linear` with codes that are small integers.
//
// A part of a row is at most 256 values of k of a group. It is represented as step * v plus a remainder.
// v has 16 bits, and step is a power of two that is chosen for the part.
// The remainder of a bfloat16 is 0 if its last bit is a multiple of step.
// Every element larger than a 64th of the largest element of the part has the remainder 0.
// If more than one in 8 elements has a remainder,
// the remainders are represented as step' * v' with a step 2^15 times finer.
// Remainders that are still left stay floats, and so do all remainders if they are few.
// Infinities and NaN stay floats too.
// Nothing is rounded: x = step * v + step' * v' + left,
// and sums of codes times v are exact integers in every order.
//
// A MicroKernel that multiplies bytes takes v as 256 * high + low, two signed bytes.
// Other micro-kernels take v as a whole.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/avx2/elements.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kPartK = 256;
constexpr float kMaxFixed = 127 * 256 + 127;  // limit of |v|, so that `high` and `low` are bytes
constexpr float kFiner = 0x1p-15f;            // ratio of the finer step to the first step
constexpr int64_t kFewLeft = 8;               // one in 8 elements: these floats cost as much as a second term
// padding; rows that are a power of two apart would share the sets of a cache
constexpr int64_t kFixedPadBytes = 64;

struct FixedPart {
  float step[2];
  int32_t sum[2];  // sum of v
  int16_t terms, left;
};
enum class FixedValues : uint8_t { bytes, words };
// Rows of x; k is a multiple of 8.
struct FixedRows {
  int64_t k, parts;
  int8_t* values;    // [m][2][k / 4]: 4 high and 4 low bytes, or 4 words, of v and of v'; rows are padded
  FixedPart* part;   // [m][parts]
  float* left;       // [m][k], the remainders of a part, starting where the part begins
  uint8_t* left_at;  // [m][k], the positions of these remainders within the part

  int64_t row_bytes() const { return 4 * k + kFixedPadBytes; }
  const int8_t* term(int64_t m, int term, int64_t at) const {
    return values + m * row_bytes() + 2 * (term * k + at);
  }
};

[[maybe_unused]] uint64_t fixed_rows_bytes(int64_t m, int64_t k, int64_t parts) {
  const int64_t row = 4 * k + kFixedPadBytes + parts * static_cast<int64_t>(sizeof(FixedPart)) + 5 * k;
  return static_cast<uint64_t>(m * row);
}
[[maybe_unused]] FixedRows fixed_rows_at(void* workspace, int64_t m, int64_t k, int64_t parts) {
  FixedRows rows = {k, parts, static_cast<int8_t*>(workspace), nullptr, nullptr, nullptr};
  rows.part = reinterpret_cast<FixedPart*>(rows.values + m * rows.row_bytes());
  rows.left = reinterpret_cast<float*>(rows.part + m * parts);
  rows.left_at = reinterpret_cast<uint8_t*>(rows.left + m * k);
  return rows;
}

constexpr uint32_t kInfinity = 0x7F800000;

// Returns the largest finite magnitude.
[[maybe_unused]] float max_finite(const float* x, int64_t count) {
  const __m256i infinity = _mm256_set1_epi32(kInfinity);
  __m256i max = _mm256_setzero_si256();
  for (int64_t k = 0; k < count; k += kLanes) {
    const __m256i size =
        _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + k)), _mm256_set1_epi32(0x7FFFFFFF));
    max = _mm256_max_epi32(max, _mm256_and_si256(size, _mm256_cmpgt_epi32(infinity, size)));
  }
  alignas(32) int32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), max);
  return std::bit_cast<float>(*std::max_element(lanes, lanes + kLanes));
}

// Returns the smallest power of two for which max / step is at most kMaxFixed. It is not a subnormal number.
[[maybe_unused]] float step_for(float max) {
  const int32_t exponent = static_cast<int32_t>(std::bit_cast<uint32_t>(max) >> 23);
  const int32_t step = std::max(exponent - 14, 1);
  const float finest = std::bit_cast<float>(step << 23);
  return max <= kMaxFixed * finest ? finest : 2 * finest;
}

// Stores 8 numbers of 16 bits, given in 32-bit lanes, to values[0 .. 16).
template <FixedValues kValues>
[[gnu::always_inline]] inline void store_values(__m256i v, int8_t* values) {
  __m256i both = v, order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1,
                                             4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  if (kValues == FixedValues::bytes) {
    const __m256i high = _mm256_srai_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(128)), 8);
    both = _mm256_blend_epi16(_mm256_slli_epi32(v, 16), high, 0x55);
    order = _mm256_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, 2, 6, 10,
                             14, -1, -1, -1, -1, -1, -1, -1, -1);
  }
  const __m256i together = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(both, order), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values), _mm256_castsi256_si128(together));
}

// Splits x = step * v + rest.
// Writes the 8 values v to values[0 .. 16) and each rest that is not 0, and adds v to *sum.
// Returns the number of rests.
template <FixedValues kValues>
int fix_eight(__m256 x, float step, int8_t* values, float* rest, __m256i* sum) {
  const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
  const __m256 finite = _mm256_cmp_ps(size, _mm256_set1_ps(std::bit_cast<float>(kInfinity)), _CMP_LT_OQ);
  const __m256i v = _mm256_cvtps_epi32(_mm256_and_ps(_mm256_mul_ps(x, _mm256_set1_ps(1 / step)), finite));
  const __m256 left = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(v), _mm256_set1_ps(step), x);
  _mm256_storeu_ps(rest, left);
  *sum = _mm256_add_epi32(*sum, v);
  store_values<kValues>(v, values);
  return std::popcount(
      static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(left, _mm256_setzero_ps(), _CMP_NEQ_UQ))));
}

template <FixedValues kValues>
int64_t fix_term(const float* x, int64_t count, float step, int8_t* values, float* rest, int32_t* sum) {
  __m256i sums = _mm256_setzero_si256();
  int64_t left = 0;
  for (int64_t k = 0; k < count; k += kLanes)
    left += fix_eight<kValues>(_mm256_loadu_ps(x + k), step, values + 2 * k, rest + k, &sums);
  alignas(32) int32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
  *sum = 0;
  for (int32_t lane : lanes) *sum += lane;
  return left;
}

// Converts part `index` of row m:
// `count` values of k, starting at `at`, padded with zeros to a multiple of 8.
template <FixedValues kValues>
void fix_part(const FixedRows& rows, uint32_t dtype, const char* row, int64_t m, int64_t index, int64_t at,
              int64_t count) {
  alignas(32) float x[kPartK], rest[kPartK];
  const int64_t bytes = dtype_bytes(dtype), whole = count / kLanes * kLanes;
  for (int64_t k = 0; k < whole; k += kLanes) _mm256_store_ps(x + k, load8(dtype, row + (at + k) * bytes));
  if (whole < count) {
    _mm256_store_ps(x + whole, load_some(dtype, row + (at + whole) * bytes, count - whole));
    count = whole + kLanes;
  }
  FixedPart part = {};
  int8_t* values = rows.values + m * rows.row_bytes() + 2 * at;
  part.step[0] = step_for(max_finite(x, count));
  part.terms = 1;
  int64_t left = fix_term<kValues>(x, count, part.step[0], values, rest, &part.sum[0]);
  if (left * kFewLeft > count) {
    part.step[1] = std::max(part.step[0] * kFiner, 0x1p-126f);
    part.terms = 2;
    left = fix_term<kValues>(rest, count, part.step[1], values + 2 * rows.k, rest, &part.sum[1]);
  }
  const int64_t to = m * rows.k + at;
  for (int64_t k = 0; left > 0 && k < count; ++k)
    if (!(rest[k] == 0)) {
      rows.left[to + part.left] = rest[k];
      rows.left_at[to + part.left++] = static_cast<uint8_t>(k);
    }
  rows.part[m * rows.parts + index] = part;
}

}  // namespace
}  // namespace qcts::avx2
