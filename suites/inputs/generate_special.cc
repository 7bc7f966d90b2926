// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/generate_special.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_float_code(DType dtype) { return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2; }

bool is_parameter(const Plane& plane) {
  const bool codes = plane.name == "qdata" || plane.name == "int_data";
  return !codes && has_float_elements(plane.dtype);
}

bool has_plane(const Scheme& scheme, const WeightShape& shape, std::string_view name, DType dtype) {
  return std::ranges::any_of(scheme.plane_specs(shape),
                             [&](const PlaneSpec& spec) { return spec.name == name && spec.dtype == dtype; });
}

bool has_wide_parameters(const Scheme& scheme, const WeightShape& shape) {
  return std::ranges::all_of(scheme.plane_specs(shape), [](const PlaneSpec& spec) {
    return spec.name == "qdata" || !has_float_elements(spec.dtype) || spec.dtype == DType::float32 ||
           spec.dtype == DType::bfloat16 || spec.dtype == DType::float8_e8m0fnu;
  });
}

void plant_in_weight(const WeightShape& shape, std::vector<std::byte>& weight) {
  constexpr double kValues[4] = {0, kNan, kInfinity, -kInfinity};
  for (int64_t row = 0; row < shape.n; ++row)
    if (row % 4 != 0)
      store_float(shape.dtype, weight, static_cast<uint64_t>(row * shape.k + row * 7 % shape.k),
                  kValues[row % 4]);
}

// Row 0: the codes of block 1 and the x that they meet have one sign and are not zero, so that a scale
// misread as infinity gives infinity, not the expected NaN through a difference or a zero.
void make_one_sign(int64_t blocks, KernelInput& input) {
  const int64_t k = input.weight.k, length = k / blocks, first = blocks > 1 ? length : 0;
  Plane& codes = input.planes.front();
  const int64_t row_bytes = static_cast<int64_t>(codes.bytes.size()) / input.weight.n;
  std::fill_n(codes.bytes.begin() + row_bytes * first / k, row_bytes * length / k, std::byte{0x22});
  for (int64_t c = first; c < first + length; ++c)
    store_float(input.x_dtype, input.x, static_cast<uint64_t>(c),
                1 + std::fabs(load_float(input.x_dtype, input.x, static_cast<uint64_t>(c))));
}

bool has_zeros(const Planes& planes) {
  return std::ranges::any_of(planes,
                             [](const Plane& plane) { return plane.name.find("zero") != std::string::npos; });
}

void plant_in_linear(KernelInput& input) {
  const int64_t k = input.weight.k, n = input.weight.n;
  bool planted = false;
  for (Plane& plane : input.planes) {
    if (plane.name != "qdata" || !is_float_code(plane.dtype)) continue;
    for (const int64_t column : {int64_t{2} % k, k - 1}) {
      plane.bytes[static_cast<size_t>((n - 1) * k + column)] = std::byte{0x7f};
      store_float(input.x_dtype, input.x, static_cast<uint64_t>(column), 0.0);
    }
    planted = true;
  }
  // The scale of row 1, which follows that of row 0, or row 0's zero if scales and zeros are interleaved.
  for (Plane& plane : input.planes) {
    const size_t index = plane.shape.size() == 3 ? 2 : 1;
    if (planted || !is_parameter(plane) || n < 2 || plane.bytes.size() <= index * dtype_bytes(plane.dtype))
      continue;
    store_float(plane.dtype, plane.bytes, index, kNan);
    if (plane.dtype == DType::float8_e8m0fnu) make_one_sign(plane.shape.back(), input);
  }
  // Each is followed by a row with neither. If a zero point is subtracted from the sum, an infinity may
  // correctly become NaN too.
  if (input.m > 1) store_float(input.x_dtype, input.x, static_cast<uint64_t>((input.m - 2) * k), kNan);
  if (input.m > 3 && !has_zeros(input.planes))
    store_float(input.x_dtype, input.x, static_cast<uint64_t>(k + k / 2), kInfinity);
  if (n < 8 || input.bias.empty()) return;
  store_float(input.bias_dtype, input.bias, static_cast<uint64_t>(n - 2), kInfinity);
  store_float(input.bias_dtype, input.bias, static_cast<uint64_t>(n - 3), kNan);
}

// The first row has the lowest code, the last one the highest.
void spread_zero_points(const Scheme& scheme, const WeightShape& shape, uint64_t seed, Planes& planes) {
  const int64_t least = scheme.params().code_min, most = scheme.params().code_max, codes = most - least + 1;
  for (Plane& plane : planes) {
    if ((plane.name != "zero_point" && plane.name != "zero_points") || has_float_elements(plane.dtype))
      continue;
    const size_t bytes = static_cast<size_t>(dtype_bytes(plane.dtype));
    for (size_t i = 0; i < plane.bytes.size(); i += bytes) {
      const int64_t random = static_cast<int8_t>(splitmix64(seed, i));
      const int64_t value = i == 0 ? least
                            : i == (static_cast<size_t>(shape.n) - 1) * bytes
                                ? most
                                : least + ((random - least) % codes + codes) % codes;
      for (size_t byte = 0; byte < bytes; ++byte)
        plane.bytes[i + byte] = static_cast<std::byte>(value >> 8 * byte);
    }
  }
}

// Multiplies every element of a parameter plane by 2^exponent(its position).
void scale_parameters(Planes& planes, int even, int odd) {
  for (Plane& plane : planes) {
    if (!is_parameter(plane)) continue;
    const size_t bytes = dtype_bytes(plane.dtype);
    // A scale and its zero get the same factor; with e8m0, whose minimum is 2^-127, a whole row does.
    const size_t alike = plane.shape.size() == 3                ? 2
                         : plane.dtype == DType::float8_e8m0fnu ? static_cast<size_t>(plane.shape.back())
                                                                : 1;
    for (size_t i = 0; i < plane.bytes.size() / bytes; ++i)
      store_float(plane.dtype, plane.bytes, i,
                  std::ldexp(load_float(plane.dtype, plane.bytes, i), i / alike % 2 == 0 ? even : odd));
  }
}

bool is_block_scale(std::string_view name, DType dtype) {
  return name == "scale" && (dtype == DType::float8_e4m3fn || dtype == DType::float8_e8m0fnu);
}

// One scale per row, so that no larger one hides its effect. e4m3: the seven subnormals, the largest, and one
// of every fourth exponent; e8m0: 2^-100 to 2^100.
void spread_block_scales(const WeightShape& shape, Planes& planes) {
  static constexpr uint8_t kE4m3[] = {1, 2, 3, 4, 5, 6, 7, 0x7E, 0x08, 0x29, 0x4A, 0x6B};
  static constexpr uint8_t kE8m0[] = {27, 63, 97, 111, 112, 127, 142, 143, 144, 157, 191, 227};
  for (Plane& plane : planes) {
    if (!is_block_scale(plane.name, plane.dtype)) continue;
    const auto& codes = plane.dtype == DType::float8_e4m3fn ? kE4m3 : kE8m0;
    const size_t blocks = plane.bytes.size() / static_cast<size_t>(shape.n);
    for (size_t i = 0; i < plane.bytes.size(); ++i)
      plane.bytes[i] = static_cast<std::byte>(codes[i / blocks % std::size(codes)]);
  }
}

// The kinds of odd scales, in turn. e8m0 has neither a sign nor a zero.
double odd_scale(DType dtype, double value, int64_t kind) {
  if (std::isnan(value)) return value;
  const double normal = float_format(dtype).min_normal, large = value * odd_factor(dtype);
  if (dtype == DType::float8_e8m0fnu) {
    const double kinds[] = {value, 0x1p-127, value, 0x1p-126, value, large, 0x1p-120, value};
    return kinds[kind % 8];
  }
  const double kinds[] = {value, -value, 0, value, normal / 4, -0.0, large, normal};
  return kinds[kind % 8];
}

// Each row of the weight has one kind, unless rows share a scale.
void make_odd(KernelInput& input) {
  const int64_t n = input.weight.n;
  for (Plane& plane : input.planes) {
    if (!may_be_odd(plane.name, plane.dtype)) continue;
    const int64_t elems = numel_of(plane.shape), step = plane.shape.size() == 3 ? 2 : 1;  // scale, zero
    for (int64_t i = 0; i < elems; i += step) {
      const int64_t row = step == 2 ? i / 2 % n : elems < n ? i : i / (elems / n);
      const auto at = static_cast<uint64_t>(i);
      store_float(plane.dtype, plane.bytes, at,
                  odd_scale(plane.dtype, load_float(plane.dtype, plane.bytes, at), row + input.m));
    }
  }
  input.bias.clear();  // it would hide small answers
}

// Bits of numbers that are none, in turn: two NaNs with a payload, quiet and signalling, and the infinities.
// float8 formats have only NaN.
std::array<uint32_t, 4> nan_bits(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return {0x7FC12345, 0xFF812345, 0x7F800000, 0xFF800000};
    case DType::bfloat16:
      return {0x7FC5, 0xFF85, 0x7F80, 0xFF80};
    case DType::float16:
      return {0x7E55, 0xFC55, 0x7C00, 0xFC00};
    case DType::float8_e8m0fnu:
      return {0xFF, 0xFF, 0xFF, 0xFF};
    default:
      return {0x7F, 0xFF, 0x7F, 0xFF};
  }
}

// Scale and zero of a pair become NaN together.
void make_nan(KernelInput& input) {
  for (Plane& plane : input.planes) {
    if (!may_be_nan({plane.name, plane.dtype, plane.shape})) continue;
    const size_t bytes = dtype_bytes(plane.dtype), alike = plane.shape.size() == 3 ? 2 : 1;
    const std::array<uint32_t, 4> bits = nan_bits(plane.dtype);
    for (size_t i = 0; i < plane.bytes.size() / bytes; ++i)
      if (const size_t turn = i / alike; turn % 2 == 1)
        std::memcpy(plane.bytes.data() + i * bytes, &bits[turn / 2 % bits.size()], bytes);
  }
}

void make_positive(DType dtype, std::vector<std::byte>& elements, double least) {
  for (uint64_t i = 0; i < elements.size() / dtype_bytes(dtype); ++i)
    store_float(dtype, elements, i, least + std::fabs(load_float(dtype, elements, i)));
}

void overflow(const Scheme& scheme, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = input.weight;
  std::vector<std::byte> weight = noise_bytes(seed, static_cast<size_t>(shape.n * shape.k), shape.dtype);
  make_positive(shape.dtype, weight, 0.25);
  // Even rows keep a small answer of one term, in which a step of its code is visible: their maximum meets x
  // = 0.
  for (int64_t r = 0; r < shape.n; r += 2)
    for (int64_t c = 0; c < shape.k; ++c)
      store_float(shape.dtype, weight, static_cast<uint64_t>(r * shape.k + c),
                  c == 0   ? 1.0
                  : c == 1 ? 0.02
                           : 0.0);
  input.planes = scheme.quantize({shape.dtype, shape.n, shape.k, weight});
  // In float16 the sums overflow before a scale that would not fit is applied.
  const bool half = shape.dtype == DType::float16;
  make_positive(input.x_dtype, input.x, half ? 2048 : 1);
  for (int64_t i = 0; i < input.m; ++i)
    store_float(input.x_dtype, input.x, static_cast<uint64_t>(i * shape.k), 0);
  input.bias.clear();
  if (!half) scale_parameters(input.planes, 0, 126);
}

// torchao 0.18.0, eager on a CPU, matches the reference bit for bit on all of nvfp4's and float8's but 2^-60.
// In a product with the smallest of them, or with an x that a large one rounds to 0, no code is visible.
constexpr double kGivenScales[] = {0x1p-149, 0x1.8p-127, 0x1p-20, 0x1p20,  0x1.cp127,
                                   -1,       kInfinity,  kNan,    0x1p-60, 0};
bool scales_a_product(double scale) { return std::abs(scale) >= 0x1p-127 && std::abs(scale) <= 1; }

void give_scale(KernelInput& input) {
  for (Plane& plane : input.planes)
    if (is_given_scale(plane.name)) store_float(plane.dtype, plane.bytes, 0, given_scale(input.m));
  for (int64_t i = 0; i < input.m * input.weight.k; i += 7)
    store_float(input.x_dtype, input.x, static_cast<uint64_t>(i), 0);
  input.bias.clear();  // it would hide the smallest scales
}

}  // namespace

bool is_given_scale(std::string_view plane) {
  return plane == "act_quant_scale" || plane == "act_per_tensor_scale";
}

double given_scale(int64_t m) { return kGivenScales[m - 1]; }

bool may_be_odd(std::string_view plane, DType dtype) {
  constexpr std::string_view kNames[] = {"scale", "scales", "scale_and_zero", "quantization_factor",
                                         "super_block_scale_scale"};
  return has_float_elements(dtype) && std::ranges::find(kNames, plane) != std::end(kNames);
}

bool may_be_nan(const PlaneSpec& spec) {
  constexpr int64_t kEnough = 8;
  return may_be_odd(spec.name, spec.dtype) && numel_of(spec.shape) >= kEnough;
}

double odd_factor(DType dtype) {
  if (dtype == DType::float8_e4m3fn) return 1;
  return dtype == DType::float16 ? 16 : 0x1p10;
}

bool spreads_zero_points(const Scheme& scheme, Op op, Generator generator) {
  return generator == Generator::zero_points || (generator == Generator::hard_x && op == Op::linear &&
                                                 scheme.params().mapping == Mapping::asymmetric);
}

bool has_given_scale(const Scheme& scheme, const WeightShape& shape, Policy activation) {
  return std::ranges::any_of(scheme.policy_specs(shape, activation),
                             [](const PlaneSpec& spec) { return is_given_scale(spec.name); });
}

std::vector<int64_t> given_scale_batches(Op op) {
  std::vector<int64_t> batches;
  for (int64_t m = 1; m <= std::ssize(kGivenScales); ++m)
    if (op != Op::linear || scales_a_product(kGivenScales[m - 1])) batches.push_back(m);
  return batches;
}

void make_ranges(int64_t group_rows, int64_t group, int64_t first, Floats& w) {
  const int64_t in_a_row = (w.cols + group - 1) / group, rows = group_rows > 0 ? group_rows : w.rows;
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c) {
      const double value = w.at(r, c), size = 0.0625 + std::fabs(value);
      const bool is_first = r % rows == 0 && c % group == 0;
      const bool is_last =
          (r % rows == rows - 1 || r == w.rows - 1) && (c % group == group - 1 || c == w.cols - 1);
      const double by_turn[kRanges] = {-size,
                                       size,
                                       -0.75,
                                       is_last ? -size : 0.0,
                                       4 + value / 4,
                                       0.75,
                                       is_first ? size : -0.0,
                                       -4 - value / 4,
                                       is_first  ? 1.0
                                       : is_last ? -1.0
                                                 : value / 2,
                                       value * 0x1p-14,
                                       value * 0x1p-23};
      w.at(r, c) = by_turn[(first + r / rows * in_a_row + c / group) % kRanges];
    }
}

bool carries(const Scheme& scheme, Generator generator, const WeightShape& shape) {
  if (is_wide(generator)) return shape.dtype != DType::float32;
  if (generator == Generator::big_x) return shape.dtype != DType::float16;
  if (generator == Generator::zero_points)
    return has_plane(scheme, shape, "zero_point", DType::int8) ||
           has_plane(scheme, shape, "zero_points", DType::int32);
  if (generator == Generator::odd_scales)
    return std::ranges::any_of(scheme.plane_specs(shape),
                               [](const PlaneSpec& spec) { return may_be_odd(spec.name, spec.dtype); });
  if (generator == Generator::nan_scales) return std::ranges::any_of(scheme.plane_specs(shape), may_be_nan);
  if (generator == Generator::tiny_sums) return has_wide_parameters(scheme, shape);
  if (generator == Generator::tiny_scales || generator == Generator::subnormal_x)
    return shape.dtype != DType::float16 && has_wide_parameters(scheme, shape);
  if (generator == Generator::block_scales)
    return shape.dtype != DType::float16 &&
           std::ranges::any_of(scheme.plane_specs(shape),
                               [](const PlaneSpec& spec) { return is_block_scale(spec.name, spec.dtype); });
  // If a zero point is added to the product, the parts overflow before the sum and cancel to NaN.
  if (generator == Generator::overflow)
    return shape.dtype != DType::float16 && scheme.group() == 0 && shape.k >= 8 &&
           has_plane(scheme, shape, "scale", DType::float32);
  if (generator == Generator::two_roundings) return has_two_roundings(scheme, shape);
  // A NaN in data shared by all rows, such as nf4's table, would hide every code.
  if (generator == Generator::non_finite) {
    const auto specs = scheme.plane_specs(shape),
               of_more = scheme.plane_specs({shape.dtype, 2 * shape.n, shape.k});
    for (size_t i = 0; i < specs.size(); ++i) {
      const bool grows = numel_of(of_more[i].shape) > std::max<int64_t>(2, numel_of(specs[i].shape));
      if (specs[i].name == "qdata" ? is_float_code(specs[i].dtype)
                                   : has_float_elements(specs[i].dtype) && grows)
        return numel_of(specs[i].shape) > 2;
    }
    return false;
  }
  return true;
}

bool make_special(const Scheme& scheme, Op op, const Synthetic& synthetic, uint64_t seed,
                  KernelInput& input) {
  const Generator generator = synthetic.generator;
  if (generator == Generator::non_finite && op == Op::quantize)
    plant_in_weight(input.weight, input.x);
  else if (generator == Generator::non_finite)
    plant_in_linear(input);
  else if (spreads_zero_points(scheme, op, generator))
    spread_zero_points(scheme, input.weight, seed, input.planes);
  else if (generator == Generator::tiny_scales)
    scale_parameters(input.planes, -60, -122),
        input.bias.clear();  // it would hide these values
  else if (generator == Generator::block_scales)
    spread_block_scales(input.weight, input.planes), input.bias.clear();
  else if (generator == Generator::odd_scales)
    make_odd(input);
  else if (generator == Generator::nan_scales)
    make_nan(input);
  else if (generator == Generator::two_roundings)
    round_twice(input);
  else if (generator == Generator::given_scales)
    give_scale(input);
  else if (generator == Generator::overflow || generator == Generator::half_overflow)
    overflow(scheme, seed, input);
  else
    return false;
  return true;
}

}  // namespace qcts
