// SPDX-License-Identifier: BSD-3-Clause
// Describes an input that is made from a seed at run time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/schemes/scheme.h"

namespace qcts {

// The generator of an input's values. suites/inputs/input_families.cc says which fault each one finds.
enum class Generator : uint8_t {
  noise,
  halfway,
  zero_rows,
  extremes,
  all_codes,
  exact_sums,
  one_hot,
  cancelling,
  non_finite,
  zero_points,
  tiny_scales,
  overflow,
  scaled_x,
  permuted_k,
  zero_x,
  split_k,
  last_k,
  hard_x,
  tiles,
  large,
  not_sparse,
  given_scales,
  panels,
  long_rows,  // named "long" in ids
  rows,
  columns,
  wide_bias,
  wide_y,
  wide_x,
  big_x,
  half_overflow,
  half_subnormal,
  block_scales,
  outliers,
  one_sign,
  swamped,
  deep,
  batches,
  tall,
  zero_codes,
  models,
  drawn,
  tied_sums,
  odd_scales,
  wide_sums,
  tiny_sums,
  huge_weights,
  end_pairs,
  nan_scales,
  deeper,
  blocks,
  larger,
  two_roundings,
  many_rows,
  layer,
  far,
  squares,
  subnormal_x,
  ranges,
  group_squares,
};
inline constexpr int kGeneratorCount = static_cast<int>(Generator::group_squares) + 1;

// Returns the name in case ids and files. Seeds derive from it.
std::string_view generator_name(Generator generator);
std::optional<Generator> find_generator(std::string_view name);

bool is_wide(Generator generator);  // true if x, y or the bias is float32 and the weight narrower
bool is_half(Generator generator);  // true for generators that use float16 only

// The part of a drawn input (suites/inputs/drawn.h) that others take from the run.
struct Draw {
  int index = 0;         // 0 to kDraws - 1
  uint32_t threads = 1;  // 1 to 17
  bool has_bias = false;
};

// The types of the inputs and the output of a linear.
struct LinearTypes {
  DType x, y, bias;
};
inline constexpr int kFirstMixedDraw = 12;  // draws from here on mix types
inline constexpr int kNarrowDraw = 15;      // the one with y and a bias of different narrow types

struct Synthetic {
  Generator generator = Generator::noise;
  WeightShape weight;
  int64_t m = 1;
  uint64_t seed = 0;
  Policy activation = {};         // one of the scheme's policies; used by linear and quantize_activation
  std::optional<Draw> draw = {};  // of Generator::drawn
  bool is_other_dtype = false;    // also asked in this dtype, for kernels that lack the family's first dtype

  // Returns the weight's type for all of them, except in families that test other types. Draws from
  // kFirstMixedDraw on take each type from their seed, and the first of them has x in float16. If x is
  // quantized, it keeps the weight's type.
  LinearTypes linear_types() const;
  // Has x a NaN that becomes a number if it is rounded by adding half a step to its bits? In every other
  // mixed draw, x is float32 and y is not.
  bool has_full_nan() const;
};

}  // namespace qcts
