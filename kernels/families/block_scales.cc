// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/block_scales.h"

#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/machine/parallel.h"

namespace qcts {
namespace {

struct SmallFormat {
  int fraction_bits, bias, sign_bit;
  float largest;
  int largest_exponent;
  bool has_nan;
};
constexpr SmallFormat kFormats[] = {{3, 7, 7, 448.0f, 8, true},
                                    {2, 15, 7, 57344.0f, 15, true},
                                    {3, 1, 5, 7.5f, 2, false},
                                    {2, 3, 5, 28.0f, 4, false},
                                    {1, 1, 3, 6.0f, 2, false}};
const SmallFormat& format_of(SmallFloat format) { return kFormats[static_cast<int>(format)]; }

constexpr uint32_t kInfinity = 0x7F800000;

uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
float of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
bool is_nan(float value) { return (bits_of(value) & 0x7FFFFFFF) > kInfinity; }

// Returns 2^exponent, also where that is subnormal.
float power_of_two(int exponent) {
  return exponent >= -126 ? of_bits(static_cast<uint32_t>(exponent + 127) << 23)
                          : of_bits(1u << (exponent + 149));
}

int clamp(int value, int min, int max) { return value < min ? min : value > max ? max : value; }

int exponent_scale(const MxRecipe& recipe, float largest) {
  const SmallFormat& format = format_of(recipe.element);
  uint32_t bits = bits_of(largest);
  if (recipe.mode == MxMode::even) bits += 1u << (22 - format.fraction_bits);
  int exponent = static_cast<int>(bits >> 23 & 255) - 127;
  if (recipe.mode == MxMode::ceil && (bits & 0x7FFFFF) != 0) ++exponent;
  return clamp(exponent - format.largest_exponent, -127, 127);
}

// ceil of log2(ratio), with the logarithm rounded to float32, for a finite ratio. Just above 2^e the
// logarithm is e + f / ln 2, where f is the fraction. It rounds to e if f / ln 2 is less than half a unit in
// the last place of e: 2^(b - 24), where b is the binade of |e|; half as much below a negative power of two.
int rounded_log2_ceiling(float ratio) {
  const auto bits = __builtin_bit_cast(uint64_t, static_cast<double>(ratio));
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const double fraction = __builtin_bit_cast(double, (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000) - 1;
  if (exponent == 0) return fraction > 0 ? 1 : 0;
  const int size = exponent < 0 ? -exponent : exponent;
  int binade = 31 - __builtin_clz(static_cast<unsigned>(size));
  if (exponent < 0 && (size & (size - 1)) == 0) --binade;
  constexpr double kLn2 = 0.693147180559945309;
  const double min = kLn2 / static_cast<double>(1 << (24 - binade));
  return fraction > min ? exponent + 1 : exponent;
}

}  // namespace

uint8_t small_float_code(SmallFloat small, float value) {
  const SmallFormat& format = format_of(small);
  const uint32_t sign = bits_of(value) >> 31 << format.sign_bit;
  uint32_t magnitude = bits_of(value) & 0x7FFFFFFF;
  if (magnitude <= kInfinity) {
    const uint32_t max = bits_of(format.largest);
    magnitude = magnitude < max ? magnitude : max;
  } else if (format.has_nan) {
    return static_cast<uint8_t>(sign | 0x7F);
  }
  // Below the smallest normal number an addition rounds: its sum counts units of the smallest subnormal.
  if (magnitude < static_cast<uint32_t>(128 - format.bias) << 23) {
    const float counter = power_of_two(24 - format.bias - format.fraction_bits);
    return static_cast<uint8_t>(sign | (bits_of(of_bits(magnitude) + counter) - bits_of(counter)));
  }
  const int dropped = 23 - format.fraction_bits;
  const uint32_t rounded = magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1) -
                           (static_cast<uint32_t>(127 - format.bias) << 23);
  return static_cast<uint8_t>(sign | rounded >> dropped);
}

float scaled(const BlockScale& scale, float x) {
  return is_nan(scale.factor) ? scale.factor : x * scale.factor;
}

MxRecipe mx_recipe(const qcts_problem& problem) {
  const qcts_scheme_params& params = scheme_params(problem);
  const SmallFloat element = params.element_dtype == QCTS_F4_E2M1_X2 ? SmallFloat::e2m1
                             : params.element_dtype == QCTS_F6_E2M3  ? SmallFloat::e2m3
                             : params.element_dtype == QCTS_F6_E3M2  ? SmallFloat::e3m2
                             : params.element_dtype == QCTS_F8_E5M2  ? SmallFloat::e5m2
                                                                     : SmallFloat::e4m3;
  const MxMode mode = params.scale_rounding == QCTS_SCALE_RCEIL  ? MxMode::rceil
                      : params.scale_rounding == QCTS_SCALE_EVEN ? MxMode::even
                      : params.scale_rounding == QCTS_SCALE_CEIL ? MxMode::ceil
                                                                 : MxMode::floor;
  return {element, mode};
}

// floor, ceil and even divide by the scale, raised to 2^-126, which equals multiplying by its inverse. The
// inverse for NaN's byte is 0.
BlockScale mx_scale(const MxRecipe& recipe, float largest) {
  if (recipe.mode != MxMode::rceil) {
    if (is_nan(largest)) return {255, 0};
    const int exponent = exponent_scale(recipe, largest);
    return {static_cast<uint8_t>(exponent + 127), power_of_two(exponent < -126 ? 126 : -exponent)};
  }
  const float ratio = largest / format_of(recipe.element).largest;
  if (is_nan(ratio)) return {255, ratio};
  if (bits_of(ratio) == kInfinity) return {254, power_of_two(-127)};
  const int exponent = ratio > 0 ? clamp(rounded_log2_ceiling(ratio), -127, 127) : -127;
  return {static_cast<uint8_t>(exponent + 127), exponent == -127 ? 1.0f : power_of_two(-exponent)};
}

BlockScale nvfp4_scale(float largest, const float* whole) {
  float scale = largest / 6.0f;
  if (whole != nullptr) scale = scale / *whole;
  if (!is_nan(scale)) scale = scale < 0x1p-6f ? 0x1p-6f : scale > 448.0f ? 448.0f : scale;
  const uint8_t byte = small_float_code(SmallFloat::e4m3, scale);
  // The code is never subnormal; a NaN is read as in c10/util/Float8_e4m3fn.h.
  const float stored = (byte & 0x7F) == 0x7F ? of_bits((byte & 0x80u) << 24 | 0x7FF00000u)
                                             : of_bits((byte + (120u << 3)) << 20);
  return {byte, (whole != nullptr ? 1.0f / *whole : 1.0f) / stored};
}

FloatRows float_rows(const qcts_problem& p) {
  const bool weight = p.op == QCTS_OP_QUANTIZE;
  return {static_cast<const char*>(p.x), p.ldx_bytes, weight ? p.n : p.m, weight ? p.w_dtype : p.x_dtype};
}

namespace {

struct LargestOfRows {
  FloatRows rows;
  int64_t k;
  Largest largest;
  uint32_t bits;  // of a magnitude: grows with it, greatest for NaN
};

void largest_of_range(void* context, int64_t first, int64_t last) {
  LargestOfRows& all = *static_cast<LargestOfRows*>(context);
  for (int64_t row = first; row < last; ++row) {
    const uint32_t mine = bits_of(all.largest(all.rows.dtype, all.rows.row(row), all.k));
    uint32_t seen = __atomic_load_n(&all.bits, __ATOMIC_RELAXED);
    while (mine > seen &&
           !__atomic_compare_exchange_n(&all.bits, &seen, mine, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

struct Nvfp4Call {
  const qcts_problem* problem;
  const float* whole;
  Nvfp4Rows rows;
};

void call_nvfp4_rows(void* context, int64_t first, int64_t last) {
  const Nvfp4Call& call = *static_cast<const Nvfp4Call*>(context);
  call.rows(*call.problem, call.whole, first, last);
}

}  // namespace

float largest_of_all(const qcts_problem& p, Largest largest) {
  LargestOfRows all = {float_rows(p), p.k, largest, 0};
  parallel_for(p.threads, all.rows.rows, 1, largest_of_range, &all);
  return of_bits(all.bits);
}

void quantize_nvfp4(const qcts_problem& p, Largest largest, Nvfp4Rows rows) {
  void* const plane = plane_data(p.out_planes, p.n_out_planes, "per_tensor_scale");
  const bool is_static =
      p.op == QCTS_OP_QUANTIZE_ACTIVATION && std::strcmp(p.activation, "static_tensor_block16") == 0;
  float whole = 1;
  if (is_static)
    std::memcpy(&whole, plane_data(p.planes, p.n_planes, "act_per_tensor_scale"), 4);
  else if (plane != nullptr)
    whole = largest_of_all(p, largest) / (448.0f * 6.0f);
  if (plane != nullptr) std::memcpy(plane, &whole, 4);
  Nvfp4Call call = {&p, plane == nullptr ? nullptr : &whole, rows};
  parallel_for(p.threads, float_rows(p).rows, 1, call_nvfp4_rows, &call);
}

namespace {

int64_t tiles_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Calls move(offset in the tiles, offset in the plain rows, count) for rows [first, last); the `count`
// scales, at most 4, are adjacent in both.
template <class Move>
void for_each_run(const ScaleShape& shape, int64_t first, int64_t last, const Move& move) {
  const int64_t across = tiles_of(shape.cols, 4);
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row / 128 * across * 512 + row % 32 * 16 + row % 128 / 32 * 4, from = row * shape.cols;
    int64_t col = 0;
    for (; col + 4 <= shape.cols; col += 4) move(at + 128 * col, from + col, 4);
    if (col < shape.cols) move(at + 128 * col, from + col, static_cast<size_t>(shape.cols - col));
  }
}

struct ScaleMove {
  ScaleShape shape;
  const char* from;
  char* to;
};
[[gnu::always_inline]] inline void copy_run(char* to, const char* from, size_t count) {
  count == 4 ? std::memcpy(to, from, 4) : std::memcpy(to, from, count);
}

// Rows of scales; multiples of 128, except the last.
void swizzle_rows(void* context, int64_t first, int64_t last) {
  const ScaleMove& task = *static_cast<const ScaleMove*>(context);
  const int64_t row_bytes = 512 * tiles_of(task.shape.cols, 4);
  if (last % 128 != 0 || task.shape.cols % 4 != 0)
    std::memset(task.to + first / 128 * row_bytes, 0,
                static_cast<size_t>(tiles_of(last - first, 128) * row_bytes));
  for_each_run(task.shape, first, last, [&](int64_t to, int64_t from, size_t count) {
    copy_run(task.to + to, task.from + from, count);
  });
}
void unswizzle_rows(void* context, int64_t first, int64_t last) {
  const ScaleMove& task = *static_cast<const ScaleMove*>(context);
  for_each_run(task.shape, first, last, [&](int64_t from, int64_t to, size_t count) {
    copy_run(task.to + to, task.from + from, count);
  });
}

}  // namespace

int64_t swizzled_bytes(const ScaleShape& shape) {
  return 512 * tiles_of(shape.rows, 128) * tiles_of(shape.cols, 4);
}

void swizzle_scales(uint32_t threads, const ScaleShape& shape, const void* plain, void* tiles) {
  ScaleMove task = {shape, static_cast<const char*>(plain), static_cast<char*>(tiles)};
  parallel_for(threads, shape.rows, 128, swizzle_rows, &task);
}

void unswizzle_scales(uint32_t threads, const ScaleShape& shape, const void* tiles, void* plain) {
  ScaleMove task = {shape, static_cast<const char*>(tiles), static_cast<char*>(plain)};
  parallel_for(threads, shape.rows, 128, unswizzle_rows, &task);
}

uint16_t e8m0_as_bf16(uint8_t code) {
  return code == 255 ? 0x7FC0 : code == 0 ? 0x0040 : static_cast<uint16_t>(code << 7);
}

uint16_t e4m3_as_bf16(uint8_t code) {
  const uint32_t sign = (code & 0x80u) << 8, magnitude = code & 0x7Fu;
  if (magnitude == 0x7F) return static_cast<uint16_t>(sign | 0x7FC0);
  const float value = __builtin_bit_cast(float, magnitude << 20) * 0x1p120f;
  return static_cast<uint16_t>(sign | __builtin_bit_cast(uint32_t, value) >> 16);
}

}  // namespace qcts
