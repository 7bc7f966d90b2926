// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/edited_planes.h"
#include "suites/inputs/generate_parts.h"
#include "suites/inputs/generate_related.h"
#include "suites/inputs/generate_special.h"
#include "suites/inputs/generate_zero_codes.h"
#include "suites/inputs/layer_input.h"

namespace qcts {
namespace {

// Keeps two of every four elements along k, in each of the six ways in turn, or fewer in each of the other
// ways; every other zero is -0.
void keep_two_of_four(Floats& w, bool fewer) {
  constexpr int kKept[] = {0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100, 0b0001, 0b0010, 0b0100, 0b1000, 0};
  const int64_t ways = fewer ? std::ssize(kKept) : 6;
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c)
      if ((kKept[(3 * r + c / 4) % ways] >> c % 4 & 1) == 0) w.at(r, c) = (r + c) % 2 == 0 ? 0.0 : -0.0;
}

Floats noise_rows(DType dtype, int64_t rows, int64_t cols, uint64_t seed, double scale) {
  Floats x(dtype, rows, cols);
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = noise(seed, i) * scale;
  return x;
}

// Makes every other group of a row smaller by 2^4 to 2^15, so that narrow scales become subnormal.
void stretch_groups(const Scheme& scheme, Floats& w) {
  const int64_t group = scheme.group() > 0 ? scheme.group() : w.cols;
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c)
      if (const int64_t g = r + c / group; g % 2 == 1)
        w.at(r, c) = std::ldexp(w.at(r, c), -static_cast<int>(4 + 5 * (g / 2) % 12));
}

// A code that becomes 0 would leave a 2:4 sparse chunk with too few.
bool stretches_groups(const Scheme& scheme, const Synthetic& synthetic) {
  return synthetic.draw && synthetic.draw->index % 8 == 2 && !is_sparse(scheme, synthetic.weight);
}

void zero_some_rows(Floats& w) {
  for (const int64_t r : {int64_t{0}, w.rows / 2, w.rows - 1}) {
    if (w.rows > 1 && r == 1) continue;
    for (int64_t c = 0; c < w.cols; ++c) w.at(r, c) = r == w.rows - 1 ? -0.0 : 0.0;
  }
}

// A finite range whose minimum, as int4_tinygemm reconstructs it (zero - 8 * scale), is so low that maximum -
// minimum overflows the dtype: both roundings go down by one unit in the last place of the zero.
struct WidestRange {
  double least, greatest;
};
WidestRange widest_range(DType dtype) {
  if (dtype == DType::float32) return {-0x1.70626ap+123, 0x1.e8f9d8p+127};
  const double most = float_format(dtype).max, least = -most * 302 / 8192;
  return {least, most + least};
}

// One kind of magnitude per row: all subnormal, all huge, huge and tiny, signed zeros and one value, the
// smallest normal, huge and ordinary, maxima just above the largest code times a power of two, the widest
// range. Huge is a quarter of the largest finite number, so that max - min stays finite.
double just_above(DType dtype, double value) {
  return value * (1 + std::ldexp(1.0, -float_format(dtype).mantissa_bits));
}

Floats extreme_weight(const WeightShape& shape, uint64_t seed) {
  Floats w(shape.dtype, shape.n, shape.k);
  constexpr double kLargest[3] = {448, 7.5, 6};
  const double huge = float_format(shape.dtype).max / 4;
  const double normal = float_format(shape.dtype).min_normal;
  const WidestRange widest = widest_range(shape.dtype);
  for (int64_t r = 0; r < shape.n; ++r) {
    for (int64_t c = 0; c < shape.k; ++c) {
      const double v = noise(seed, static_cast<uint64_t>(r * shape.k + c)) / 4;
      const double sign = v < 0 ? -1 : 1;
      switch (r % 12 >= 10 ? r % 12 - 4 : r % 6) {
        case 0:
          w.at(r, c) = v * normal / 2;
          break;
        case 1:
          w.at(r, c) = v * huge;
          break;
        case 2:
          w.at(r, c) = c % 7 == 0 ? v * huge : v * normal;
          break;
        case 3:
          w.at(r, c) = c % 5 == 0 ? v : sign * 0.0;
          break;
        case 4:
          w.at(r, c) = sign * normal;
          break;
        case 5:
          w.at(r, c) = c % 3 == 0 ? sign * huge : v;
          break;
        case 7:
          w.at(r, c) = c % 8 == 0 ? widest.least : c % 8 == 4 ? widest.greatest : v;
          break;
        default:
          w.at(r, c) = just_above(shape.dtype, kLargest[c / 32 % 3]) * (c % 8 == 0 ? sign : v) * 0x1p-5;
          break;
      }
    }
  }
  return w;
}

// Rows of x unlike noise: all above zero, all below zero and, if a row does not affect the others' scale,
// small, large, with a NaN and with infinities, each next to a finite row.
void harden_x(Floats& x, bool rows_apart) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double small = x.dtype == DType::float16 ? 0x1p-6 : 0x1p-20;
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t turn = r % 5;
    const double size = !rows_apart ? 1 : turn == 0 ? small : turn == 4 ? 0x1p12 : 1;
    for (int64_t c = 0; c < x.cols; ++c) {
      if (turn == 2 || turn == 4) x.at(r, c) = (turn == 2 ? 1 : -1) * (1 + std::fabs(x.at(r, c)) / 8);
      x.at(r, c) *= size;
    }
    if (rows_apart && (turn == 1 || turn == 3)) x.at(r, x.cols / 2) = turn == 1 ? kNan : kInfinity;
    if (rows_apart && turn == 3) x.at(r, x.cols - 1) = -kInfinity;
  }
}

// Every other row has one sign and values near its maximum, which gives the largest possible sums of codes.
void fill_near_max(Floats& w) {
  for (int64_t r = 1; r < w.rows; r += 2)
    for (int64_t c = 0; c < w.cols; ++c) w.at(r, c) = 0.75 + std::fabs(w.at(r, c)) / 16;
}

// A few nonzeros in long rows, including the last element: the error bound of a full float32 sum would hide a
// wrong code. Each row has them `shift` places before those of the row above.
void make_sparse(Floats& x, int64_t shift) {
  const int64_t every = x.cols > 8192 ? 512 : 64;
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t c = 0; c + 1 < x.cols && x.cols > 2048; ++c)
      if ((c + shift * r) % every != every - 1) x.at(r, c) = 0;
}

// Does each row of x have its own scales?
bool has_rows_apart(const Scheme& scheme, const Synthetic& synthetic) {
  const Matrix x{synthetic.weight.dtype, 2, synthetic.weight.k, {}};
  for (const PlaneSpec& spec : scheme.activation_specs(x, synthetic.activation))
    if (spec.name == "per_tensor_scale" || (spec.name == "scale" && spec.shape[0] != 2)) return false;
  return true;
}

// Are all scales of x given? Then no element of x affects the code of another.
bool quantizes_elements_apart(const Scheme& scheme, const Synthetic& synthetic) {
  return std::ranges::any_of(scheme.policy_specs(synthetic.weight, synthetic.activation),
                             [](const PlaneSpec& spec) { return spec.name == "act_quant_scale"; });
}

void linear_activation(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t m = synthetic.m, k = shape.k;
  if (synthetic.generator == Generator::one_hot || synthetic.generator == Generator::last_k) {
    Floats x(shape.dtype, m, k);
    for (int64_t i = 0; i < m; ++i)
      x.at(i, synthetic.generator == Generator::one_hot ? one_hot_column(i, m, k) : k - 1 - i % k) = 1;
    input.x = x.bytes();
    return;
  }
  const Generator generator = synthetic.generator;
  const LinearTypes types = synthetic.linear_types();
  // Noise has few bits, so that float32 sums of it and small codes are exact in every order.
  const bool has_all_bits = types.x == DType::float32 &&
                            (generator == Generator::noise || generator == Generator::rows || synthetic.draw);
  const double scale = generator == Generator::big_x ? 0x1p16 : has_all_bits ? 0.7 : 1.0;
  Floats x = noise_rows(types.x, m, k, seed + 1, scale);
  if (generator == Generator::half_subnormal) make_half_subnormal(x);
  if (generator == Generator::tiny_sums) make_tiny_x(x);
  if (generator == Generator::subnormal_x) make_subnormal_x(x);
  if (synthetic.generator == Generator::zero_rows)
    for (int64_t c = 0; c < k; ++c) x.at(0, c) = 0;
  // Zero times NaN is NaN: a kernel may not skip a group of zeros.
  if (generator == Generator::zero_rows && synthetic.activation == kWeightOnly && m > 2)
    x.at(m - 2, k - 1) = std::numeric_limits<double>::quiet_NaN();
  if (synthetic.generator == Generator::hard_x) harden_x(x, has_rows_apart(scheme, synthetic));
  const bool is_long =
      generator == Generator::long_rows || generator == Generator::deep || generator == Generator::deeper;
  if (generator == Generator::panels || is_long) make_sparse(x, 5);
  if (synthetic.generator == Generator::tiles)
    synthetic.activation == kWeightOnly ? make_sparse(x, 0) : fill_near_max(x);
  if (synthetic.draw) x.at(m - 1, k / 3) = -0.0;
  input.x = x.bytes();
  if (synthetic.has_full_nan() && !is_sparse(scheme, shape)) put_full_nan(input.x, (m - 1) * k + k / 2);
  // A bias would hide small answers.
  const bool is_small = generator == Generator::half_subnormal || generator == Generator::hard_x ||
                        generator == Generator::tiny_sums || generator == Generator::subnormal_x;
  const bool has_bias = synthetic.draw
                            ? synthetic.draw->has_bias
                            : generator == Generator::tiles || generator == Generator::panels || is_long ||
                                  generator == Generator::wide_bias || (shape.n + m) % 2 == 0;
  if (has_bias && !is_small) input.bias = noise_rows(types.bias, 1, shape.n, seed + 2, 0.5).bytes();
}

// A weight with one scale is all negative with 37 rows, and zero but for its end with 40. Where scales have
// scales (nf4), a weight of fewer than 64 rows has one magnitude, so that the scales do not differ.
void make_ranges_of_weight(const Scheme& scheme, const WeightShape& shape, Floats& w) {
  constexpr int64_t kFirst = 7, kRowsOfOneMagnitude = 64;
  const bool has_scales_of_scales = std::ranges::any_of(
      scheme.plane_specs(shape), [](const PlaneSpec& spec) { return spec.name == "quantized_scalers"; });
  const int64_t group_rows = scheme.params().group_rows;
  if (has_scales_of_scales && shape.n < kRowsOfOneMagnitude)
    for (double& value : w.values) value = std::copysign(0.75, value);
  else
    make_ranges(group_rows, group_length(scheme, shape), group_rows == 0 ? shape.n + kFirst : 0, w);
}

void quantize_weight(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  if (synthetic.generator == Generator::large || synthetic.generator == Generator::larger) {
    input.x = noise_weight_for(scheme, shape, seed);
    return;
  }
  if (synthetic.generator == Generator::halfway) {
    input.x = boundary_weight(scheme, shape, seed);
    return;
  }
  if (synthetic.generator == Generator::extremes) {
    input.x = extreme_weight(shape, seed).bytes();
    return;
  }
  Floats w = noise_weight(scheme, shape, seed);
  if (synthetic.generator == Generator::zero_rows) zero_some_rows(w);
  if (stretches_groups(scheme, synthetic)) stretch_groups(scheme, w);
  if (synthetic.generator == Generator::ranges) make_ranges_of_weight(scheme, shape, w);
  if (synthetic.generator == Generator::not_sparse)  // only the last chunk
    for (int64_t i = 1; i <= 3; ++i) w.at(shape.n - 1, shape.k - i) = 0.25;
  input.x = w.bytes();
}

void quantized_planes(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, Op op,
                      KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  if (synthetic.generator == Generator::large || synthetic.generator == Generator::larger ||
      synthetic.generator == Generator::tall || synthetic.generator == Generator::many_rows) {
    input.planes = random_planes(scheme, shape, seed);
    return;
  }
  const bool has_all_codes =
      synthetic.generator == Generator::all_codes || synthetic.generator == Generator::one_hot;
  Floats w = noise_weight(scheme, shape, seed, !has_all_codes);
  // quantize_activation reads no weight, and a sparse weight cannot have rows of zeros.
  const bool is_plain = op != Op::quantize_activation || !is_sparse(scheme, shape);
  if (synthetic.generator == Generator::zero_rows && is_plain) zero_some_rows(w);
  if (synthetic.generator == Generator::tiles && is_plain) fill_near_max(w);
  if (stretches_groups(scheme, synthetic)) stretch_groups(scheme, w);
  if (synthetic.generator == Generator::tiny_sums) make_tiny_weight(w);
  if (synthetic.generator == Generator::subnormal_x) make_huge_weight(w);
  if (synthetic.generator == Generator::huge_weights) fill_to_max(w);
  if (synthetic.generator == Generator::ranges && op != Op::quantize_activation)
    make_ranges_of_weight(scheme, shape, w);
  input.planes = quantized(scheme, shape, w.bytes());
  if (has_all_codes) {
    plant_all_codes(scheme, shape, input.planes, op != Op::linear);
    if (op == Op::linear) drop_infinities(shape, codes_plane(input.planes));
    scramble_scales(input.planes, seed + 3);
  }
  if (synthetic.generator == Generator::extremes) {
    plant_all_codes(scheme, shape, input.planes, false);
    stretch_scales(input.planes);
  }
}

void add_policy_planes(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input) {
  const Planes own = policy_planes(scheme, synthetic.weight, synthetic.activation, false);
  input.planes.insert(input.planes.end(), own.begin(), own.end());
}

// Rows of x under a policy, for quantize_activation.
std::vector<std::byte> rows_of_x(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed,
                                 const Planes& planes) {
  const WeightShape& shape = synthetic.weight;
  if (synthetic.generator == Generator::halfway)
    return boundary_activation(scheme, shape, synthetic.activation, planes, synthetic.m, seed);
  if (synthetic.generator == Generator::extremes)
    return extreme_weight({shape.dtype, synthetic.m, shape.k}, seed).bytes();
  Floats x = noise_rows(shape.dtype, synthetic.m, shape.k, seed, 1.0);
  if (synthetic.generator == Generator::zero_rows) zero_some_rows(x);
  if (synthetic.generator == Generator::ranges) {
    const bool has_own_scales = has_rows_apart(scheme, synthetic);
    make_ranges(has_own_scales ? 1 : 0, shape.k, has_own_scales ? 0 : shape.k, x);
  }
  // A NaN in the last row, where another thread than the first finds it.
  if (synthetic.draw && synthetic.draw->index % 8 == 5)
    x.at(synthetic.m - 1, shape.k / 2) = std::numeric_limits<double>::quiet_NaN();
  if (synthetic.generator == Generator::hard_x)
    harden_x(x, has_rows_apart(scheme, synthetic) || quantizes_elements_apart(scheme, synthetic));
  return x.bytes();
}

}  // namespace

Floats noise_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed, bool fewer) {
  constexpr double kSteps[3] = {0.0625, 0.25, 1.0};
  Floats w(shape.dtype, shape.n, shape.k);
  const int64_t group = group_length(scheme, shape);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      w.at(r, c) = noise(seed, static_cast<uint64_t>(r * shape.k + c)) * kSteps[(r + c / group) % 3];
  if (is_sparse(scheme, shape)) keep_two_of_four(w, fewer);
  return w;
}

int64_t one_hot_column(int64_t row, int64_t m, int64_t k) {
  if (m >= k || m == 1) return row % k;
  return row * (k - 1) / (m - 1);
}

Generated generate(const Scheme& scheme, Op op, Layout layout, const Synthetic& synthetic, uint64_t seed) {
  Generated made;
  const Generator generator = synthetic.generator;
  if (generator == Generator::far)
    throw std::invalid_argument(
        "a weight of more than 4 GiB is judged as it is: it can be neither shrunk nor exported");
  const bool is_wide_sum = generator == Generator::wide_sums;
  const bool swamps =
      generator == Generator::swamped || (is_wide_sum && has_outliers(scheme, synthetic.weight));
  const bool is_exact =
      generator == Generator::exact_sums || is_relation(generator) || (is_wide_sum && !swamps);
  if (op == Op::linear && is_exact) {
    made = exact_sums(scheme, synthetic, seed);
  } else if (op == Op::linear && synthetic.generator == Generator::tied_sums) {
    made = tied_sums(scheme, synthetic, seed);
  } else if (op == Op::linear && synthetic.generator == Generator::outliers) {
    made = outliers(scheme, synthetic, seed);
  } else if (op == Op::linear && synthetic.generator == Generator::zero_codes) {
    made = zero_codes(scheme, synthetic, seed);
  } else if (op == Op::linear && swamps) {
    made = swamped(scheme, synthetic, seed);
  } else if (op == Op::linear && (generator == Generator::one_sign || generator == Generator::end_pairs)) {
    (generator == Generator::one_sign ? one_sign : end_pairs)(scheme, synthetic, made.input);
    add_policy_planes(scheme, synthetic, made.input);
  } else if (op == Op::linear && synthetic.generator == Generator::cancelling) {
    cancelling(scheme, synthetic, seed, made.input);
  } else if (generator == Generator::layer) {
    made.input = layer_data(scheme, synthetic, seed);
    add_policy_planes(scheme, synthetic, made.input);
  } else if (op == Op::quantize) {
    quantize_weight(scheme, synthetic, seed, made.input);
  } else {
    quantized_planes(scheme, synthetic, seed, op, made.input);
    add_policy_planes(scheme, synthetic, made.input);
    if (op == Op::linear) linear_activation(scheme, synthetic, seed, made.input);
    if (op == Op::quantize_activation) made.input.x = rows_of_x(scheme, synthetic, seed, made.input.planes);
  }
  KernelInput& input = made.input;
  input.activation = synthetic.activation;
  input.op = op;
  input.scheme = &scheme;
  input.weight = synthetic.weight;
  input.layout = layout;
  input.m = op == Op::linear || op == Op::quantize_activation ? synthetic.m : 0;
  input.x_dtype = input.y_dtype = input.bias_dtype = synthetic.weight.dtype;
  if (op == Op::linear) {
    const LinearTypes types = synthetic.linear_types();
    input.x_dtype = types.x;
    input.y_dtype = types.y;
    input.bias_dtype = types.bias;
  }
  make_special(scheme, op, synthetic, seed + 4, input);
  if (is_relation(synthetic.generator)) relate(scheme, synthetic, seed, made);
  if (op == Op::unpack) input.planes = scheme.pack(input.planes, synthetic.weight, input.layout);
  return made;
}

}  // namespace qcts
