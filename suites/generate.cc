#include "suites/generate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/compare.h"
#include "suites/generate_parts.h"

namespace qcts {
namespace {

// Noise; neighbouring rows and groups differ by a factor of 4, so that a scale taken from the neighbour
// shows.
Floats noise_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  constexpr double kSteps[3] = {0.0625, 0.25, 1.0};
  Floats w(shape.dtype, shape.n, shape.k);
  const int64_t group = group_length(scheme, shape);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      w.at(r, c) = noise(seed, static_cast<uint64_t>(r * shape.k + c)) * kSteps[(r + c / group) % 3];
  return w;
}

Floats noise_rows(DType dtype, int64_t rows, int64_t cols, uint64_t seed, double scale) {
  Floats x(dtype, rows, cols);
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = noise(seed, i) * scale;
  return x;
}

void zero_some_rows(Floats& w) {
  for (const int64_t r : {int64_t{0}, w.rows / 2, w.rows - 1}) {
    if (w.rows > 1 && r == 1) continue;
    for (int64_t c = 0; c < w.cols; ++c) w.at(r, c) = r == w.rows - 1 ? -0.0 : 0.0;
  }
}

// One kind of magnitude a row: all subnormal, all huge, huge beside tiny, signed zeros beside one value, the
// smallest normal. Huge is a quarter of the largest finite, so that max - min stays finite.
Floats extreme_weight(const WeightShape& shape, uint64_t seed) {
  Floats w(shape.dtype, shape.n, shape.k);
  const double huge = float_format(shape.dtype).max / 4;
  const double normal = float_format(shape.dtype).min_normal;
  for (int64_t r = 0; r < shape.n; ++r) {
    for (int64_t c = 0; c < shape.k; ++c) {
      const double v = noise(seed, static_cast<uint64_t>(r * shape.k + c)) / 4;
      const double sign = v < 0 ? -1 : 1;
      switch (r % 6) {
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
        default:
          w.at(r, c) = c % 3 == 0 ? sign * huge : v;
          break;
      }
    }
  }
  return w;
}

Plane& codes_plane(Planes& planes) {
  for (Plane& plane : planes)
    if (plane.name == "qdata") return plane;
  return planes.front();
}

bool is_nan_code(DType dtype, std::byte code) {
  return (dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2) &&
         std::isnan(decode_float(dtype, std::to_integer<uint64_t>(code)));
}

bool has_meaning(const Scheme& scheme, const WeightShape& shape, const Planes& planes) {
  try {
    scheme.dequantize(planes, shape);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// Every byte value at every place modulo 256, so every code in every nibble and lane. Where that has no
// meaning (values of 2:4 sparse weights without a place), codes that were zero stay so.
void plant_all_codes(const Scheme& scheme, const WeightShape& shape, Planes& planes, bool with_nan) {
  const Plane before = codes_plane(planes);
  for (const bool keep_zeros : {false, true}) {
    Plane& codes = codes_plane(planes);
    for (size_t i = 0; i < codes.bytes.size(); ++i) {
      std::byte value{static_cast<uint8_t>(i * 167 + i / 256 * 29)};
      if (!with_nan && is_nan_code(codes.dtype, value)) value &= std::byte{0x80};
      const bool zero = (before.bytes[i] & std::byte{0x7F}) == std::byte{0};
      codes.bytes[i] = keep_zeros && zero ? before.bytes[i] : value;
    }
    if (has_meaning(scheme, shape, planes)) return;
  }
}

// A random mantissa in every wide scale: what reads it in a narrower type loses bits.
void scramble_scales(Planes& planes, uint64_t seed) {
  for (Plane& plane : planes) {
    if (plane.dtype != DType::float32) continue;
    for (size_t i = 0; i + 4 <= plane.bytes.size(); i += 4) {
      const uint64_t random = splitmix64(seed, i);
      plane.bytes[i] = static_cast<std::byte>(random);
      plane.bytes[i + 1] = static_cast<std::byte>(random >> 8);
    }
  }
}

// Scales (and zero points) at the ends of their own type: unchanged, subnormal, the smallest, near the
// largest that 128 codes allow.
void stretch_scales(Planes& planes) {
  for (Plane& plane : planes) {
    if (!has_float_elements(plane.dtype) || plane.name == codes_plane(planes).name) continue;
    const size_t bytes = dtype_bytes(plane.dtype);
    const double normal = float_format(plane.dtype).min_normal;
    for (size_t i = 0; i < plane.bytes.size() / bytes; ++i) {
      const double value = load_float(plane.dtype, plane.bytes, i);
      if (!std::isfinite(value) || value == 0) continue;
      int exponent = 0;
      const double mantissa = std::frexp(value, &exponent);
      switch (i / 2 % 4) {
        case 1:
          store_float(plane.dtype, plane.bytes, i, mantissa * normal);
          break;
        case 2:
          store_float(plane.dtype, plane.bytes, i, std::copysign(normal * 0x1p-7, value));
          break;
        case 3:
          store_float(plane.dtype, plane.bytes, i, mantissa * std::ldexp(float_format(plane.dtype).max, -9));
          break;
        default:
          break;
      }
    }
  }
}

bool integers_survive(const Scheme& scheme, const WeightShape& shape, const Anchors& anchors) {
  WeightShape probe = shape;
  probe.n = 1;
  Floats w(shape.dtype, 1, shape.k);
  const int64_t group = group_length(scheme, shape);
  for (int64_t c = 0; c < shape.k; ++c)
    w.at(0, c) = c % group == 0   ? anchors.low
                 : c % group == 1 ? anchors.high
                                  : static_cast<double>(c % 7 - 3);
  if (scheme.refusal(probe)) return false;
  const Planes planes = quantized(scheme, probe, w.bytes());
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  scheme.exact_row(planes, probe, 0, row);
  for (int64_t c = 0; c < shape.k; ++c) {
    const ExactWeight& weight = row[static_cast<size_t>(c)];
    int exponent = 0;
    if (std::frexp(weight.scale, &exponent) != 0.5) return false;
    if (c % group > 1 && weight.product + weight.zero != w.at(0, c)) return false;
  }
  return true;
}

constexpr Anchors kAnchors[] = {{-127.5, 127.5}, {-448, 448}, {-8, 7}, {-7, 8},         {-9, 6}, {-10, 5},
                                {-7.5, 7.5},     {-127, 127}, {-7, 7}, {-57344, 57344}, {-6, 6}};

std::vector<Anchors> surviving_anchors(const Scheme& scheme, const WeightShape& shape) {
  std::vector<Anchors> found;
  for (const Anchors& anchors : kAnchors)
    if (integers_survive(scheme, shape, anchors)) found.push_back(anchors);
  return found;
}

// Units that a sum of exact_sums may reach: what bfloat16, the narrowest type that a stage rounds to, holds
// exactly.
constexpr int64_t kExactUnits = 256;

Generated exact_sums(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed) {
  const WeightShape& shape = synthetic.weight;
  const int64_t group = group_length(scheme, shape);
  const std::vector<Anchors> anchors = surviving_anchors(scheme, shape);
  if (anchors.empty() && group > 2)
    throw std::logic_error("exact_sums: no maximum gives " + std::string(scheme.name()) +
                           " a scale that is a power of two");
  Floats w(shape.dtype, shape.n, shape.k);
  for (int64_t r = 0; r < shape.n; ++r) {
    for (int64_t c = 0; c < shape.k; ++c) {
      const double unit = std::ldexp(1.0, static_cast<int>((r + c / group) % 2) - 4);
      const uint64_t random = splitmix64(seed, static_cast<uint64_t>(r * shape.k + c));
      double value = static_cast<double>(static_cast<int64_t>(random % 7) - 3);
      if (!anchors.empty()) {
        const Anchors& pair = anchors[static_cast<size_t>(r + c / group) % anchors.size()];
        value = c % group == 0 ? pair.low : c % group == 1 ? pair.high : value;
      }
      w.at(r, c) = value * unit;
    }
  }
  // The columns of x's own anchors, the first two that are none of the weight's, have weight zero.
  const bool policy = synthetic.activation != kWeightOnly;
  if (policy)
    for (int64_t r = 0; r < shape.n; ++r) w.at(r, 2) = w.at(r, 3) = 0;
  Generated made;
  made.exact = true;
  made.input.planes = quantized(scheme, shape, w.bytes());
  // An odd factor on the scales: 3 is exact in every type that a power of two is.
  for (Plane& plane : made.input.planes) {
    if (!has_float_elements(plane.dtype) || plane.name == codes_plane(made.input.planes).name) continue;
    const size_t bytes = dtype_bytes(plane.dtype);
    for (size_t i = 0; i < plane.bytes.size() / bytes; ++i)
      store_float(plane.dtype, plane.bytes, i, 3 * load_float(plane.dtype, plane.bytes, i));
  }
  // At most 9 terms a row of at most 3 * (3 + 3) * 2^1 units each; the anchors' columns stay out of the sums.
  Floats x(shape.dtype, synthetic.m, shape.k);
  constexpr int64_t kTerms = 9;
  for (int64_t i = 0; i < synthetic.m; ++i) {
    for (int64_t t = 0; t < kTerms; ++t) {
      const int64_t column =
          t == 0 ? shape.k - 1
                 : static_cast<int64_t>(splitmix64(seed + 1, static_cast<uint64_t>(i * kTerms + t)) %
                                        static_cast<uint64_t>(shape.k));
      if (column % group > 1) x.at(i, column) = (t + i) % 3 == 0 ? -1 : 1;
    }
  }
  if (policy) {
    const Planes own = policy_planes(scheme, shape, synthetic.activation, true);
    made.input.planes.insert(made.input.planes.end(), own.begin(), own.end());
    const auto pair = activation_anchors(scheme, shape, synthetic.activation, made.input.planes);
    for (int64_t i = 0; pair && i < synthetic.m; ++i) {
      x.at(i, 2) = pair->low;
      x.at(i, 3) = pair->high;
    }
  }
  made.input.x = x.bytes();
  Floats bias(shape.dtype, 1, shape.n);
  for (int64_t r = 0; r < shape.n; ++r) bias.at(0, r) = static_cast<double>(r % 5 - 2) / 16;
  made.input.bias = bias.bytes();
  return made;
}

// The second half repeats the first in the weight and negates it in x: large terms, an answer near zero.
// Partial sums of the first half leave the range of float16.
void cancelling(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t half = shape.k / 2;
  Floats w(shape.dtype, shape.n, shape.k), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      w.at(r, c) =
          std::fabs(noise(seed, static_cast<uint64_t>(r * shape.k + c % std::max<int64_t>(half, 1))));
  for (int64_t i = 0; i < synthetic.m; ++i) {
    for (int64_t c = 0; c < half; ++c) {
      x.at(i, c) = 2048 + 512 * noise(seed + 1, static_cast<uint64_t>(i * shape.k + c)) / 4;
      x.at(i, half + c) = -x.at(i, c);
    }
    if (shape.k % 2 == 1) x.at(i, shape.k - 1) = 1;
  }
  input.planes = quantized(scheme, shape, w.bytes());
  input.x = x.bytes();
}

void linear_activation(const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t m = synthetic.m, k = shape.k;
  if (synthetic.generator == "one_hot" || synthetic.generator == "last_k") {
    Floats x(shape.dtype, m, k);
    for (int64_t i = 0; i < m; ++i)
      x.at(i, synthetic.generator == "one_hot" ? one_hot_column(i, m, k) : k - 1 - i % k) = 1;
    input.x = x.bytes();
    return;
  }
  Floats x = noise_rows(shape.dtype, m, k, seed + 1, 1.0);
  if (synthetic.generator == "zero_rows")
    for (int64_t c = 0; c < k; ++c) x.at(0, c) = 0;
  input.x = x.bytes();
  if ((shape.n + m) % 2 == 0) input.bias = noise_rows(shape.dtype, 1, shape.n, seed + 2, 0.5).bytes();
}

void quantize_weight(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  if (synthetic.generator == "halfway") {
    input.x = boundary_weight(scheme, shape, seed);
    return;
  }
  if (synthetic.generator == "extremes") {
    input.x = extreme_weight(shape, seed).bytes();
    return;
  }
  Floats w = noise_weight(scheme, shape, seed);
  if (synthetic.generator == "zero_rows") zero_some_rows(w);
  input.x = w.bytes();
}

void quantized_planes(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, std::string_view op,
                      KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  Floats w = noise_weight(scheme, shape, seed);
  if (synthetic.generator == "zero_rows") zero_some_rows(w);
  input.planes = quantized(scheme, shape, w.bytes());
  if (synthetic.generator == "all_codes") plant_all_codes(scheme, shape, input.planes, op != "linear");
  if (synthetic.generator == "all_codes" || synthetic.generator == "one_hot")
    scramble_scales(input.planes, seed + 3);
  if (synthetic.generator == "extremes") {
    plant_all_codes(scheme, shape, input.planes, false);
    stretch_scales(input.planes);
  }
}

bool known_generator(std::string_view name) {
  for (const std::string_view known : {"noise", "halfway", "zero_rows", "extremes", "all_codes", "exact_sums",
                                       "one_hot", "cancelling", "last_k"})
    if (name == known) return true;
  return false;
}

// Rows of x under a policy, for quantize_activation.
std::vector<std::byte> rows_of_x(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed,
                                 const Planes& planes) {
  const WeightShape& shape = synthetic.weight;
  if (synthetic.generator == "halfway")
    return boundary_activation(scheme, shape, synthetic.activation, planes, synthetic.m, seed);
  if (synthetic.generator == "extremes")
    return extreme_weight({shape.dtype, synthetic.m, shape.k}, seed).bytes();
  Floats x = noise_rows(shape.dtype, synthetic.m, shape.k, seed, 1.0);
  if (synthetic.generator == "zero_rows") zero_some_rows(x);
  return x.bytes();
}

}  // namespace

int64_t one_hot_column(int64_t row, int64_t m, int64_t k) {
  if (m >= k || m == 1) return row % k;
  return row * (k - 1) / (m - 1);
}

Planes random_planes(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  Planes planes = make_planes(scheme.plane_specs(shape, "plain"));
  Plane& codes = codes_plane(planes);
  for (size_t i = 0; i < codes.bytes.size(); i += 8) {
    const uint64_t random = splitmix64(seed, i);
    std::memcpy(codes.bytes.data() + i, &random, std::min<size_t>(8, codes.bytes.size() - i));
  }
  for (std::byte& code : codes.bytes)
    if (is_nan_code(codes.dtype, code)) code &= std::byte{0x80};
  for (Plane& plane : planes) {
    if (!has_float_elements(plane.dtype) || plane.name == codes.name) continue;
    for (size_t i = 0; i < plane.bytes.size() / dtype_bytes(plane.dtype); ++i)
      store_float(plane.dtype, plane.bytes, i, (4.5 + noise(seed + 1, i)) * 0x1p-8);
  }
  return planes;
}

Planes quantized(const Scheme& scheme, const WeightShape& shape, const std::vector<std::byte>& bytes) {
  try {
    return scheme.quantize({shape.dtype, shape.n, shape.k, bytes});
  } catch (const std::invalid_argument&) {
    constexpr int kKept[6] = {0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100};
    std::vector<std::byte> sparse = bytes;
    for (int64_t r = 0; r < shape.n; ++r) {
      bool any = false;
      for (int64_t c = 0; c < shape.k; ++c) {
        const int64_t i = r * shape.k + c;
        if (!(kKept[(r + c / 4) % 6] >> c % 4 & 1)) store_float(shape.dtype, sparse, i, 0.0);
        any |= load_float(shape.dtype, sparse, i) != 0;
      }
      if (!any) store_float(shape.dtype, sparse, r * shape.k, 1.0);
    }
    return scheme.quantize({shape.dtype, shape.n, shape.k, sparse});
  }
}

bool carries_exact_sums(const Scheme& scheme, const WeightShape& shape) {
  if (group_length(scheme, shape) <= 2) return true;
  return std::any_of(std::begin(kAnchors), std::end(kAnchors),
                     [&](const Anchors& anchors) { return integers_survive(scheme, shape, anchors); });
}

Generated generate(const Scheme& scheme, std::string_view op, std::string_view layout,
                   const Synthetic& synthetic, uint64_t seed) {
  if (!known_generator(synthetic.generator))
    throw std::invalid_argument("no generator '" + synthetic.generator + "'");
  Generated made;
  if (op == "linear" && synthetic.generator == "exact_sums") {
    made = exact_sums(scheme, synthetic, seed);
  } else if (op == "linear" && synthetic.generator == "cancelling") {
    cancelling(scheme, synthetic, seed, made.input);
  } else if (op == "quantize") {
    quantize_weight(scheme, synthetic, seed, made.input);
  } else {
    quantized_planes(scheme, synthetic, seed, op, made.input);
    Planes own = policy_planes(scheme, synthetic.weight, synthetic.activation, false);
    made.input.planes.insert(made.input.planes.end(), own.begin(), own.end());
    if (op == "linear") linear_activation(synthetic, seed, made.input);
    if (op == "quantize_activation") made.input.x = rows_of_x(scheme, synthetic, seed, made.input.planes);
  }
  KernelInput& input = made.input;
  input.activation = synthetic.activation;
  input.op = op;
  input.scheme = &scheme;
  input.weight = synthetic.weight;
  input.layout = layout.empty() ? "plain" : layout;
  input.m = op == "linear" || op == "quantize_activation" ? synthetic.m : 0;
  input.x_dtype = input.y_dtype = input.bias_dtype = synthetic.weight.dtype;
  if (op == "unpack") input.planes = scheme.pack(input.planes, synthetic.weight, input.layout);
  return made;
}

}  // namespace qcts
