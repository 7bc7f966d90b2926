// SPDX-License-Identifier: BSD-3-Clause
// Turns rows of x into int8 codes with a scale and a zero point, for `linear`. The policies are those of
// kernels/families/int8_x.h and of intx. A block handles one row. It reads the row twice, the second time
// from L1 or L2, and writes one byte per element.
#pragma once

#include "kernels/families/int8_x.h"
#include "kernels/sm80/product.h"

namespace qcts::sm80 {
namespace {

// Threads of a block. One warp is enough for a short row.
constexpr uint32_t kRowThreads = 256, kShortRowThreads = 32;
constexpr int64_t kShortRow = 1024;

// kernels/scalar/int8.h has the same steps on the host. For `steps_of_float` they are int8_row_scale() and
// int8_code(). The other steps have their own names there.
enum class RowSteps : uint32_t { steps_of_float, row_127, token };
struct RowPolicy {
  RowSteps steps;
  bool asymmetric;
  int32_t code_min, code_max;
  const uint8_t *given_scale, *given_zero;  // if NULL, the scale is computed and the zero point is 0
};

// Codes [m, pitch], and the bits of a float32 scale and an int32 zero point for each row.
struct CodedRows {
  uint8_t* codes;
  uint8_t* rows;
  int64_t pitch;
};

// Returns the lesser number, or NaN.
QCTS_DEVICE float lesser(float a, float b) { return a != a || a < b ? a : b; }
QCTS_DEVICE float limited(float value, float low, float high) {
  return value < low ? low : value > high ? high : value;
}

// `low` is the minimum of the row and 0. `high` is the maximum of the row and 0. Both are NaN if the row has
// a NaN.
template <class T>
QCTS_DEVICE RowScale row_scale(const RowPolicy& policy, float low, float high) {
  const auto code_min = static_cast<float>(policy.code_min), code_max = static_cast<float>(policy.code_max);
  if (policy.given_scale != nullptr)
    return {float_of(load_global<uint32_t>(policy.given_scale)),
            policy.given_zero == nullptr ? 0 : static_cast<int8_t>(load_global<uint8_t>(policy.given_zero))};
  const float steps = code_max - code_min, largest = -low > high ? -low : high;
  if (policy.steps == RowSteps::row_127) {
    const float scale = round_to<T>(largest / 127.0f), min = round_to<T>(1e-5f);
    return {scale < min ? min : scale, 0};
  }
  const bool token = policy.steps == RowSteps::token;
  const float min = !token ? 0x1p-23f : std::is_same_v<T, F16> ? 0x1p-14f : 0x1p-126f;
  const float span = policy.asymmetric ? round_to<T>(high - low) : largest;
  float scale = round_to<T>(span / (policy.asymmetric ? steps : steps / 2));
  if (scale < min) scale = min;
  if (!policy.asymmetric) return {scale, 0};
  float zero_point = code_min - nearbyintf(round_to<T>(low / scale));
  if (token) zero_point = round_to<T>(zero_point);
  if (zero_point != zero_point) return {scale, 0};
  return {scale, static_cast<int32_t>(limited(zero_point, code_min, code_max))};
}

// Rounds a value as the policy's steps are rounded.
template <class T>
QCTS_DEVICE float step(const RowPolicy& policy, float value) {
  if (policy.steps == RowSteps::token) return round_to<T>(value);
  if (policy.steps == RowSteps::row_127) return std::is_same_v<T, BF16> ? round_to<T>(value) : value;
  return value;
}

template <class T>
QCTS_DEVICE uint32_t row_code(const RowPolicy& policy, const RowScale& of, float reciprocal, float x) {
  const float steps = nearbyintf(step<T>(policy, x * reciprocal));
  const float code = step<T>(policy, steps + static_cast<float>(of.zero_point));
  if (code != code) return 0;
  const float code_min = policy.steps == RowSteps::row_127 ? -127.0f : static_cast<float>(policy.code_min);
  return static_cast<uint8_t>(
      static_cast<int32_t>(limited(code, code_min, static_cast<float>(policy.code_max))));
}

// Reduces low and -high over the block, and gives all threads the result. `scratch` has two floats for each
// warp.
QCTS_DEVICE void block_range(float& low, float& minus_high, uint8_t* scratch) {
  QCTS_UNROLL
  for (uint32_t with = 16; with > 0; with /= 2) {
    low = lesser(low, shuffle_xor(low, with));
    minus_high = lesser(minus_high, shuffle_xor(minus_high, with));
  }
  if (lane_index() == 0)
    store_shared(scratch + 8 * warp_index(), Words2{{bits_of(low), bits_of(minus_high)}});
  sync_block();
  for (uint32_t warp = 0; warp < block_threads() / 32; ++warp) {
    const auto other = load_shared<Words2>(scratch + 8 * warp);
    low = lesser(low, float_of(other.word[0]));
    minus_high = lesser(minus_high, float_of(other.word[1]));
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    code_rows(const Product p, const RowPolicy policy, const CodedRows to) {
  const int64_t m = block_x();
  const uint8_t* row = p.x + m * p.ldx_bytes;
  const auto eight = [&](int64_t k, float(&x)[8]) {
    QCTS_UNROLL
    for (int part = 0; part < 8; part += T::kChunk) {
      const Words4 chunk = load_row_chunk<T::kBytes>(row + (k + part) * T::kBytes,
                                                     (p.k - k - part) * T::kBytes, p.has_aligned_x);
      QCTS_UNROLL
      for (int i = 0; i < T::kChunk; ++i) x[part + i] = T::decode(element<T>(chunk, i));
    }
  };
  float low = 0, minus_high = 0;
  for (int64_t k = 8 * thread_index(); policy.given_scale == nullptr && k < p.k; k += 8 * block_threads()) {
    float x[8];
    eight(k, x);
    QCTS_UNROLL
    for (int i = 0; i < 8; ++i) {
      low = lesser(low, x[i]);
      minus_high = lesser(minus_high, -x[i]);
    }
  }
  if (policy.given_scale == nullptr) block_range(low, minus_high, shared_memory());
  const RowScale of = row_scale<T>(policy, low, -minus_high);
  const float reciprocal = step<T>(policy, 1.0f / of.scale);
  for (int64_t k = 8 * thread_index(); k < to.pitch; k += 8 * block_threads()) {
    Words2 codes = {};
    if (k < p.k) {
      float x[8];
      eight(k, x);
      QCTS_UNROLL
      for (int i = 0; i < 8; ++i)
        if (k + i < p.k) codes.word[i / 4] |= row_code<T>(policy, of, reciprocal, x[i]) << 8 * (i % 4);
    }
    store_global(to.codes + m * to.pitch + k, codes);
  }
  if (thread_index() == 0)
    store_global(to.rows + 8 * m, Words2{{bits_of(of.scale), static_cast<uint32_t>(of.zero_point)}});
}

// Returns the policy of int8_row or its siblings. `Range` is the range of the weight's codes.
template <class Range>
RowPolicy int8_policy(const qcts_problem& p) {
  const bool given = has_given_scale(p.activation),
             has_zero = std::strcmp(p.activation, "static_tensor_sym") != 0;
  return {std::strcmp(p.activation, "dyn_row_sym_127") == 0 ? RowSteps::row_127 : RowSteps::steps_of_float,
          std::strcmp(p.activation, "dyn_row_asym") == 0,
          Range::kMin,
          Range::kMax,
          given ? static_cast<const uint8_t*>(in_plane(p, "act_quant_scale")) : nullptr,
          given && has_zero ? static_cast<const uint8_t*>(in_plane(p, "act_quant_zero_point")) : nullptr};
}
[[maybe_unused]] RowPolicy intx_policy(const qcts_problem& p) {
  const bool in_dtype = std::strcmp(p.activation, "dyn_token_asym") == 0;
  return {in_dtype ? RowSteps::token : RowSteps::steps_of_float,
          true,
          FullRange::kMin,
          FullRange::kMax,
          nullptr,
          nullptr};
}

}  // namespace
}  // namespace qcts::sm80
