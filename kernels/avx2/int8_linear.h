// SPDX-License-Identifier: BSD-3-Clause
// Macro-kernel of `linear` with int8 rows of x, for the AVX2 variants.
// y is sx times the sum over groups of sw * sum((qx - zx) * (qw - zw)), plus bias.
//
// kernels/avx2/int8_sums.h sums (qx - zx) * qw.
// At the end of a group, zw is applied exactly to the sum of (qx - zx).
// A block of 64 columns holds the codes of each group, followed by 64 scales and 64 zero points.
#pragma once

#include <concepts>

#include "kernels/avx2/int8.h"
#include "kernels/avx2/int8_sums.h"
#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

constexpr int kRows = 64;
// min. group that uses streams; shorter groups apply scales too often (groups of 32 are 0.7 times as fast)
constexpr int64_t kStreamGroup = 128;
// x and the codes of the last group are padded with zeros to a multiple of kPadK
constexpr int kPadK = 8;
constexpr int64_t kMaxK = 65536;  // 255 * 128 * 65536 < 2^31

struct LinearCall {
  const qcts_problem* problem;
  const uint8_t* prepared;
  int16_t* x;       // [m][padded k], qx - zx
  int32_t* x_sums;  // [m][groups]
  RowScale* rows;   // [m]
  RowRecipe recipe;
};

// A scheme defines the places of its codes in a block, and how codes become 16-bit integers.
// prepare_group(p, first_n, columns, g, codes) puts the codes into a block.
template <class T>
concept IntegerScheme = requires(const qcts_problem& p, const uint8_t* from, int vector, int pair) {
  // Codes come in steps of kStepPairs pairs of k. A step has kStepBytes bytes for 64 columns.
  requires T::kStepPairs > 0 && T::kStepBytes > 0;
  // elements that share a scale: all of k, or a multiple of a step
  { T::group(p) } -> std::convertible_to<int64_t>;
  { T::scale_dtype(p) } -> std::convertible_to<uint32_t>;  // dtype of the weight's scales
  { T::kOneScale } -> std::convertible_to<bool>;           // true if all rows of the weight share a scale
  { T::recipe(p) } -> std::same_as<RowRecipe>;             // recipe of x
  typename T::Codes;                                       // codes of x: FullRange or ReducedRange
  // decode() returns the 16-bit codes of a pair of k for the 8 columns of `vector`.
  requires sizeof(T::decode(from, vector, pair)) == sizeof(__m256i);
};

template <IntegerScheme Scheme>
int64_t padded_group(const qcts_problem& p) {
  return (Scheme::group(p) + kPadK - 1) / kPadK * kPadK;
}
template <IntegerScheme Scheme>
int64_t groups(const qcts_problem& p) {
  return p.k / Scheme::group(p);
}
template <IntegerScheme Scheme>
int64_t padded_k(const qcts_problem& p) {
  return groups<Scheme>(p) * padded_group<Scheme>(p);
}
template <IntegerScheme Scheme>
int64_t code_bytes(const qcts_problem& p) {
  return padded_group<Scheme>(p) / 2 / Scheme::kStepPairs * Scheme::kStepBytes;
}
template <IntegerScheme Scheme>
int64_t group_bytes(const qcts_problem& p) {
  return code_bytes<Scheme>(p) + kColumns * (dtype_bytes(Scheme::scale_dtype(p)) + 1);
}
template <IntegerScheme Scheme>
int64_t block_bytes(const qcts_problem& p) {
  return groups<Scheme>(p) * group_bytes<Scheme>(p);
}
[[maybe_unused]] int64_t blocks(const qcts_problem& p) { return (p.n + kColumns - 1) / kColumns; }

// For groups that are parts of a row, computes totals += scale * (sums - zero point * sum of x).
// The integers stay below 2^24 for groups of up to 512 elements, so floats hold them exactly.
[[maybe_unused]] void apply_scales(uint32_t scale_dtype, const uint8_t* scales, const int32_t* x_sums,
                                   int64_t ld_sums, int64_t rows, const int32_t (*sums)[kColumns],
                                   float (*totals)[kColumns]) {
  const int64_t bytes = scale_dtype == QCTS_F32 ? 4 : 2;
  for (int n = 0; n < kColumns; n += kLanes) {
    const __m256 scale = load8(scale_dtype, scales + n * bytes);
    const __m256i zero_point = _mm256_cvtepi8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + kColumns * bytes + n)));
    for (int64_t m = 0; m < rows; ++m) {
      const __m256i offset = _mm256_mullo_epi32(zero_point, _mm256_set1_epi32(x_sums[m * ld_sums]));
      const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&sums[m][n]));
      const __m256 value = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, offset));
      _mm256_storeu_ps(&totals[m][n], _mm256_fmadd_ps(scale, value, _mm256_loadu_ps(&totals[m][n])));
    }
  }
}

[[maybe_unused]] __m256d low_half(__m256 a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a)); }
[[maybe_unused]] __m256d high_half(__m256 a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)); }

// Stores eight outputs: total * sx + bias in double, rounded to float32 and then to the dtype of y.
[[maybe_unused]] void store_outputs(const qcts_problem& p, int64_t m, int64_t n, double x_scale, __m256d low,
                                    __m256d high) {
  const int64_t some = p.n - n < kLanes ? p.n - n : kLanes;
  __m256 bias = _mm256_setzero_ps();
  if (p.bias != nullptr)
    bias = load_some(p.bias_dtype, static_cast<const char*>(p.bias) + n * dtype_bytes(p.bias_dtype), some);
  const __m256d scale = _mm256_set1_pd(x_scale);
  low = _mm256_fmadd_pd(low, scale, low_half(bias));
  high = _mm256_fmadd_pd(high, scale, high_half(bias));
  const __m256 value = _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
  store_some(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes + n * dtype_bytes(p.y_dtype), value, some);
}

// For a row that is one group, stores sw * (sums - zero point * sum of x). This is exact in double.
[[maybe_unused]] void store_row_sums(const qcts_problem& p, const LinearCall& call, uint32_t scale_dtype,
                                     const uint8_t* scales, int64_t m, int64_t n, const int32_t* sums) {
  const int64_t lane = n % kColumns, bytes = dtype_bytes(scale_dtype);
  const __m256 scale = load8(scale_dtype, scales + lane * bytes);
  const __m256i zero_point = _mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + kColumns * bytes + lane)));
  const __m256d x_sum = _mm256_set1_pd(call.x_sums[m]);
  const auto scaled = [&](__m256d of_scale, __m128i of_zero, const int32_t* at) {
    const __m256d sum = _mm256_cvtepi32_pd(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    return _mm256_mul_pd(_mm256_fnmadd_pd(_mm256_cvtepi32_pd(of_zero), x_sum, sum), of_scale);
  };
  store_outputs(p, m, n, call.rows[m].scale,
                scaled(low_half(scale), _mm256_castsi256_si128(zero_point), sums + lane),
                scaled(high_half(scale), _mm256_extracti128_si256(zero_point, 1), sums + lane + 4));
}

// Stores the rows of a block, starting at first_m.
// If a row is one group, the outputs come from the sums, and otherwise from the totals.
template <IntegerScheme Scheme>
void store_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows,
                 const int32_t (*sums)[kColumns], const float (*totals)[kColumns]) {
  const qcts_problem& p = *call.problem;
  const int64_t count = groups<Scheme>(p);
  const uint32_t scale_dtype = Scheme::scale_dtype(p);
  const uint8_t* scales = call.prepared + block * block_bytes<Scheme>(p) + code_bytes<Scheme>(p);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = block * kColumns; n < p.n && n < (block + 1) * kColumns; n += kLanes) {
      if (count == 1) {
        store_row_sums(p, call, scale_dtype, scales, first_m + m, n, sums[m]);
      } else {
        const __m256 total = _mm256_loadu_ps(&totals[m][n % kColumns]);
        store_outputs(p, first_m + m, n, call.rows[first_m + m].scale, low_half(total), high_half(total));
      }
    }
}

template <IntegerScheme Scheme>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *call.problem;
  alignas(64) int32_t panel[kPanelPairs][kColumns];
  alignas(64) int32_t sums[kRows][kColumns];
  alignas(64) float totals[kRows][kColumns];
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* codes = call.prepared + block * block_bytes<Scheme>(p);
  const int64_t pairs = padded_group<Scheme>(p) / 2, count = groups<Scheme>(p), ldx = padded_k<Scheme>(p);
  const int64_t stride = group_bytes<Scheme>(p), scales_at = code_bytes<Scheme>(p);
  const uint32_t scale_dtype = Scheme::scale_dtype(p);
  const int64_t max = rows > 2 ? kPanelPairs : rows == 2 ? 128 : pairs;
  for (int64_t g = 0; g < count; ++g) {
    const uint8_t* at = codes + g * stride;
    for (int64_t line = scales_at; line < stride; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at + line + (rows > 1 ? kFarBytes : stride)), _MM_HINT_T0);
    for (int64_t pair = 0; pair < pairs; pair += max) {
      const PackedPanel packed = {at + pair / Scheme::kStepPairs * Scheme::kStepBytes,
                                  pairs - pair < max ? pairs - pair : max,
                                  call.x + first_m * ldx + 2 * (g * pairs + pair), ldx, pair == 0};
      multiply_packed<Scheme>(packed, rows, sums, panel);
    }
    if (count > 1)
      apply_scales(scale_dtype, at + scales_at, call.x_sums + first_m * count + g, count, rows, sums, totals);
  }
  store_block<Scheme>(call, block, first_m, rows, sums, totals);
}

// Multiplies one row by kStreams blocks side by side (kernels/avx2/streams.h).
template <IntegerScheme Scheme>
void multiply_streams(const LinearCall& call, int64_t block, int64_t apart) {
  const qcts_problem& p = *call.problem;
  alignas(64) int32_t sums[kStreams][kColumns];
  alignas(64) float totals[kStreams][kColumns] = {};
  const uint8_t* codes = call.prepared + block * block_bytes<Scheme>(p);
  const int64_t stream = apart * block_bytes<Scheme>(p), stride = group_bytes<Scheme>(p);
  const int64_t pairs = padded_group<Scheme>(p) / 2, count = groups<Scheme>(p),
                scales_at = code_bytes<Scheme>(p);
  const uint32_t scale_dtype = Scheme::scale_dtype(p);  // looked up once, not for each group
  constexpr int64_t kMax = kStreamBytes / Scheme::kStepBytes * Scheme::kStepPairs;
  for (int64_t g = 0; g < count; ++g, codes += stride) {
    for (int64_t pair = 0; pair < pairs; pair += kMax)
      for (int s = 0; s < kStreams; ++s) {
        const PackedPanel packed = {codes + s * stream + pair / Scheme::kStepPairs * Scheme::kStepBytes,
                                    pairs - pair < kMax ? pairs - pair : kMax,
                                    call.x + 2 * (g * pairs + pair), 0, pair == 0};
        multiply_codes<Scheme, 1, kVectors, kStreamPrefetchBytes>(packed, 0, sums + s);
      }
    for (int s = 0; count > 1 && s < kStreams; ++s)
      apply_scales(scale_dtype, codes + s * stream + scales_at, call.x_sums + g, count, 1, sums + s,
                   totals + s);
  }
  for (int s = 0; s < kStreams; ++s) store_block<Scheme>(call, block + s * apart, 0, 1, sums + s, totals + s);
}

template <IntegerScheme Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const int64_t m_count = call.problem->m;
  const auto alone = [&](int64_t block) {
    for (int64_t m = 0; m < m_count; m += kRows)
      multiply_block<Scheme>(call, block, m, m_count - m < kRows ? m_count - m : kRows);
  };
  if (m_count == 1 && Scheme::group(*call.problem) >= kStreamGroup)
    return in_streams(
        first, last, [&](int64_t block, int64_t apart) { multiply_streams<Scheme>(call, block, apart); },
        alone);
  for (int64_t block = first; block < last; ++block) alone(block);
}

// Writes a row as 16-bit values of (qx - zx), padded with zeros, and the sum of each group.
template <IntegerScheme Scheme>
void quantize_rows(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  const int64_t count = groups<Scheme>(p), group = Scheme::group(p), padded = padded_group<Scheme>(p);
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const RowScale chosen = call.rows[m] = row_scale<typename Scheme::Codes>(call.recipe, row, p.k);
    const __m256 reciprocal = _mm256_set1_ps(reciprocal_of(call.recipe, chosen.scale));
    const __m256 zero_point = _mm256_set1_ps(static_cast<float>(chosen.zero_point));
    const __m256i offset = _mm256_set1_epi32(chosen.zero_point);
    for (int64_t g = 0; g < count; ++g) {
      int16_t* to = call.x + m * padded_k<Scheme>(p) + g * padded;
      __m256i total = _mm256_setzero_si256();
      for (int64_t k = 0; k < group; k += kLanes) {
        const __m256 x = elements(call.recipe.dtype, row, g * group + k, g * group + group);
        __m256i code = _mm256_sub_epi32(
            codes_of<typename Scheme::Codes>(call.recipe, x, reciprocal, zero_point), offset);
        if (k + kLanes > group) {  // beyond the row
          const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
          code = _mm256_and_si256(code,
                                  _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(group - k)), lane));
        }
        total = _mm256_add_epi32(total, code);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(code, code), 0xD8);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), _mm256_castsi256_si128(packed));
      }
      int32_t lanes[kLanes], sum = 0;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), total);
      for (int32_t lane : lanes) sum += lane;
      call.x_sums[m * count + g] = sum;
    }
  }
}

template <IntegerScheme Scheme>
void pack_blocks(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  auto* prepared = static_cast<uint8_t*>(const_cast<void*>(p.prepared));
  const int64_t count = groups<Scheme>(p), bytes = dtype_bytes(Scheme::scale_dtype(p));
  const auto* scales = static_cast<const char*>(in_plane(p, "scale"));
  const auto* zero_points = static_cast<const int8_t*>(in_plane(p, "zero_point"));
  for (int64_t block = first; block < last; ++block)
    for (int64_t g = 0; g < count; ++g) {
      const int64_t n = block * kColumns, columns = p.n - n < kColumns ? p.n - n : kColumns;
      uint8_t* codes = prepared + block * block_bytes<Scheme>(p) + g * group_bytes<Scheme>(p);
      Scheme::pack_group(p, n, columns, g, codes);
      uint8_t* tail = codes + code_bytes<Scheme>(p);
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = Scheme::kOneScale ? 0 : (n + c) * count + g;
        std::memcpy(tail + c * bytes, scales + at * bytes, static_cast<size_t>(bytes));
        tail[kColumns * bytes + c] = static_cast<uint8_t>(zero_points[at]);
      }
    }
}

template <IntegerScheme Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(blocks(*p) * block_bytes<Scheme>(*p) + kGivenBytes);
}
template <IntegerScheme Scheme>
uint64_t workspace_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(p->m) * (static_cast<uint64_t>(padded_k<Scheme>(*p)) * 2 +
                                        static_cast<uint64_t>(groups<Scheme>(*p)) * 4 + sizeof(RowScale));
}

template <const qcts_kernel& kKernel, IntegerScheme Scheme>
qcts_status supports_linear(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_status status = supports_policy<kKernel>(problem, why, why_size);
  if (status != QCTS_OK) return status;
  const qcts_problem& p = *problem;
  if (Scheme::group(p) > kMaxK)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: 32-bit sums hold at most %lld elements",
                  static_cast<long long>(Scheme::group(p)), static_cast<long long>(kMaxK));
  if (Scheme::group(p) != p.k && (Scheme::group(p) % kPadK != 0 || Scheme::group(p) > 512))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: needs a multiple of 8 up to 512, or the row",
                  static_cast<long long>(Scheme::group(p)));
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, IntegerScheme Scheme>
qcts_status prepare_linear(const qcts_problem* problem, void* prepared) {
  qcts_problem copy = as_weight_only(*problem);
  if (check_prepare(kKernel, &copy) != QCTS_OK || !gives_scale(kKernel, *problem)) return QCTS_INVALID;
  std::memset(prepared, 0, prepared_bytes<Scheme>(problem));
  keep_given_scale(*problem, static_cast<uint8_t*>(prepared) + blocks(copy) * block_bytes<Scheme>(copy));
  copy.prepared = prepared;
  parallel_for(copy.threads, blocks(copy), 1, pack_blocks<Scheme>, &copy);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, IntegerScheme Scheme>
qcts_status run_checked(const qcts_problem* problem) {
  const qcts_problem copy = as_weight_only(*problem);
  if (supports_linear<kKernel, Scheme>(problem, nullptr, 0) != QCTS_OK ||
      check_run(kKernel, &copy) != QCTS_OK)
    return QCTS_INVALID;
  if (copy.m == 0) return QCTS_OK;
  auto* x = static_cast<int16_t*>(copy.workspace);
  auto* x_sums = reinterpret_cast<int32_t*>(x + copy.m * padded_k<Scheme>(copy));
  auto* rows = reinterpret_cast<RowScale*>(x_sums + copy.m * groups<Scheme>(copy));
  const auto* prepared = static_cast<const uint8_t*>(copy.prepared);
  LinearCall call = {&copy, prepared, x, x_sums, rows, Scheme::recipe(*problem)};
  call.recipe.given = kept_scale(prepared + blocks(copy) * block_bytes<Scheme>(copy));
  parallel_for(copy.threads, copy.m, 4, quantize_rows<Scheme>, &call);
  parallel_for(copy.threads, blocks(copy), 1, multiply_blocks<Scheme>, &call);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, IntegerScheme Scheme>
constexpr qcts_kernel int8_linear_of(const char* scheme, const char* description) {
  return linear_entry(scheme, "avx2", description, QCTS_I32,
                      {supports_linear<kKernel, Scheme>, run_checked<kKernel, Scheme>,
                       workspace_bytes<Scheme>, prepared_bytes<Scheme>, prepare_linear<kKernel, Scheme>});
}

}  // namespace
}  // namespace qcts::avx2
