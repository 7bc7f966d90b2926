// SPDX-License-Identifier: BSD-3-Clause
// Protects Scheme::written(): each range ends where a finite weight makes quantize() end, no finite weight
// goes beyond, and every case occurs. The weights here are constants, pairs and ramps at the ends of their
// type, at the exponents near these, and a few that one recipe needs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/not_written.h"

namespace qcts {
namespace {

using Weight = std::vector<double>;

struct WrittenSubject {
  std::string scheme;
  DType dtype;
  Layout layout;
};

Weight filled(int64_t count, const std::vector<double>& values) {
  Weight weight;
  for (int64_t i = 0; i < count; ++i) weight.push_back(values[static_cast<size_t>(i) % values.size()]);
  return weight;
}

Weight ramp(int64_t count, double from, double to) {
  Weight weight;
  for (int64_t i = 0; i < count; ++i) {
    const double part = count == 1 ? 1 : static_cast<double>(i) / static_cast<double>(count - 1);
    weight.push_back(from * (1 - part) + to * part);
  }
  return weight;
}

// Blocks of equal length, each filled with its values.
Weight in_blocks(int64_t count, const std::vector<std::vector<double>>& blocks) {
  const int64_t length = count / static_cast<int64_t>(blocks.size());
  Weight weight;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<double>& values = blocks[static_cast<size_t>(i / length)];
    weight.push_back(values[static_cast<size_t>(i) % values.size()]);
  }
  return weight;
}

double step_of(const FloatFormat& format, double value) {
  return std::ldexp(2 * format.unit_roundoff, std::max(std::ilogb(value), std::ilogb(format.min_normal)));
}

std::vector<Weight> weights_at_the_ends(int64_t count, const FloatFormat& format) {
  const double max = format.max, tiny = format.min_subnormal;
  std::vector<Weight> weights;
  const std::vector<double> ends = {0,          max,  -max,  max / 2,   -max / 2,  max / 4,    1,          -1,
                                    -max / 256, tiny, -tiny, 37 * tiny, 94 * tiny, 180 * tiny, -180 * tiny};
  for (const double a : ends)
    for (const double b : ends) {
      weights.push_back(filled(count, {a, b}));
      weights.push_back(ramp(count, a, b));
      weights.push_back(in_blocks(count, {{a}, {b, -b}}));
    }
  return weights;
}

std::vector<Weight> weights_of_exponents(int64_t count, const FloatFormat& format) {
  std::vector<Weight> weights;
  const int first = std::ilogb(format.min_subnormal), last = std::ilogb(format.max);
  for (int e = first; e <= last; ++e) {
    if (e > first + 45 && e < last - 10) continue;
    const double power = std::ldexp(1.0, e), below = std::ldexp(2 - 2 * format.unit_roundoff, e);
    for (const double largest : {power, below, 1.5 * power, 1.75 * power, 1.875 * power}) {
      weights.push_back(ramp(count, -largest, largest));
      weights.push_back(filled(count, {largest, 0, 0, 0}));
      weights.push_back(filled(count, {largest, -largest, 0, 0}));
    }
  }
  return weights;
}

// The ends of gguf_proto's codes (gguf_proto.cc, largest_codes), and super blocks whose parameters are 0 or
// infinite.
std::vector<Weight> weights_for_gguf(int64_t count, const FloatFormat& format) {
  const double u = format.min_subnormal, max = format.max, p = std::ldexp(1.0, format.mantissa_bits + 1);
  const std::vector<double> zero = {0}, wide = {0, 1323}, widest = {0, max}, all = {max};
  return {in_blocks(count, {{-(p - 1) * 32 * u, -(p - 2) * 32 * u}, wide, all, zero, zero, zero, zero, zero}),
          in_blocks(count, {{(p - 1) * 32 * u, (p - 2) * 32 * u}, wide, all, zero, zero, zero, zero, zero}),
          in_blocks(count, {{520 * u, 557 * u}, wide, all, zero, zero, zero, zero, zero}),
          in_blocks(count, {zero, widest, zero, widest, zero, zero, zero, zero}),
          in_blocks(count, {{8 * u, 23 * u}, all, all, all, all, all, all, all}),
          in_blocks(count, {{-max, max}, all, {1, 2}, zero, zero, zero, zero, zero})};
}

// The ends of nf4's factors and means. Scalers are the largest magnitudes of blocks of 64.
std::vector<Weight> weights_for_nf4(int64_t count, const FloatFormat& format) {
  const double max = format.max;
  const auto of_scalers = [&](const std::vector<double>& scalers) {
    std::vector<std::vector<double>> blocks;
    for (int64_t i = 0; i < count / 64; ++i)
      blocks.push_back({scalers[static_cast<size_t>(i) % scalers.size()], 0});
    return in_blocks(count, blocks);
  };
  std::vector<Weight> weights = {filled(count, {0}), ramp(count, -max, max), ramp(count, -1, 1),
                                 filled(count, {1, 0.5, -1})};
  for (const double x : {format.min_subnormal, 1.0, max, max / 256}) weights.push_back(of_scalers({x}));
  const double even = max / 256, step = step_of(format, even);
  weights.push_back(of_scalers({even + step, even - step}));
  std::vector<double> one(static_cast<size_t>(count / 64), even);
  one.front() = 2 * even;  // bfloat16: the largest sum below float32's largest
  weights.push_back(of_scalers(one));
  one.assign(one.size(), 0.0);
  for (int ulps = -4; ulps <= 4; ++ulps) {
    const double half = max / 2 * 256 / 255;
    one.front() = half + ulps * step_of(format, half);
    weights.push_back(of_scalers(one));
    const double least = 128 / max;
    weights.push_back(of_scalers({2 * (least + ulps * step_of(format, least)), 0}));
  }
  for (const double x : {max, 0.75 * max}) {
    one.front() = x;
    weights.push_back(of_scalers(one));
  }
  return weights;
}

// A shape of few elements that the scheme accepts.
std::optional<WeightShape> small_shape(const Scheme& scheme, DType dtype, Layout layout) {
  for (const int64_t n : {1, 16})
    for (const int64_t k : {8, 32, 64, 128, 256, 16384})
      if (!scheme.refusal({dtype, n, k}) && (layout == kPlain || !scheme.refusal({dtype, n, k}, layout)))
        return WeightShape{dtype, n, k};
  return std::nullopt;
}

std::vector<Weight> weights_for(const Scheme& scheme, const WeightShape& shape) {
  const FloatFormat& format = float_format(shape.dtype);
  const int64_t count = shape.n * shape.k;
  if (scheme.family() == "nf4") return weights_for_nf4(count, format);
  std::vector<Weight> weights = weights_at_the_ends(count, format);
  for (Weight& weight : weights_of_exponents(count, format)) weights.push_back(std::move(weight));
  if (scheme.family() == "fp8_sparse24") {
    weights.push_back(filled(count, {0, 0, 1, -1}));
    weights.push_back(filled(count, {0, 0, 0, format.max, 0, 0, 0, 0}));
  }
  if (scheme.family() == "gguf_proto")
    for (Weight& weight : weights_for_gguf(count, format)) weights.push_back(std::move(weight));
  return weights;
}

std::vector<std::byte> stored(const Weight& weight, DType dtype) {
  const double max = float_format(dtype).max;
  std::vector<std::byte> bytes(weight.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < weight.size(); ++i) store_float(dtype, bytes, i, std::clamp(weight[i], -max, max));
  return bytes;
}

// The ends of all cases together: the finite ones, and whether there are others.
struct Ends {
  double min = INFINITY, max = -INFINITY;
  bool nan = false, above = false, below = false;
  bool operator==(const Ends&) const = default;

  void add(double value) {
    nan = nan || std::isnan(value);
    above = above || value == INFINITY;
    below = below || value == -INFINITY;
    if (std::isfinite(value)) min = std::min(min, value), max = std::max(max, value);
  }
  std::string text() const {
    char text[128];
    std::snprintf(text, sizeof text, "%.9g .. %.9g%s%s%s", min, max, nan ? " NaN" : "", above ? " +inf" : "",
                  below ? " -inf" : "");
    return text;
  }
};
using PartName = std::pair<std::string, int>;  // a plane and the first of its elements

std::map<PartName, Ends> stated_ends(const Written& written) {
  std::map<PartName, Ends> ends;
  for (const WrittenCase& each : written)
    for (const WrittenRange& range : each.ranges) {
      Ends& of = ends[{std::string(range.plane), range.first}];
      if (range.values.nan) of.add(NAN);
      if (range.values.min <= range.values.max) of.add(range.values.min), of.add(range.values.max);
    }
  return ends;
}

// Notes what one weight shows: the ends of values, and the cases whose elements occur.
void note(const Scheme& scheme, const Planes& planes, const WeightShape& shape, const Written& written,
          std::map<PartName, Ends>& seen, std::set<size_t>& cases) {
  std::map<std::string, std::vector<double>> numbers;
  for (const PlaneSpec& spec : scheme.plane_specs(shape)) {
    std::vector<double>& of = numbers[spec.name];
    of = stored_numbers(scheme, spec, shape, plane(planes, spec.name).bytes);
    for (const WrittenRange& range : written.front().ranges)
      if (range.plane == spec.name)
        for (size_t i = static_cast<size_t>(range.first); i < of.size(); i += static_cast<size_t>(range.step))
          seen[{spec.name, range.first}].add(of[i]);
  }
  for (size_t c = 0; c < written.size(); ++c) {
    if (cases.contains(c)) continue;
    const bool sparse = scheme.family() == "fp8_sparse24";
    for (int64_t k = 0; k < (sparse ? shape.k / 2 : shape.k) && !cases.contains(c); k += sparse ? 2 : 1) {
      std::map<PartName, bool> fits;
      for (const WrittenRange& range : written[c].ranges) {
        const int64_t at = scheme.element_of(shape, range.plane, 0, k);
        const double value =
            numbers.at(std::string(range.plane))[static_cast<size_t>(at - at % range.step + range.first)];
        bool& fit = fits[{std::string(range.plane), range.first}];
        fit = fit || range.values.holds(value);
      }
      if (std::ranges::all_of(fits, [](const auto& each) { return each.second; })) cases.insert(c);
    }
  }
}

std::vector<WrittenSubject> subjects() {
  std::vector<WrittenSubject> all;
  std::vector<std::string> names = {
      "int8_row",        "int8_tensor",      "int8_g32",          "int8_row_reduced", "int8_tensor_reduced",
      "int8_row_v1",     "int8_g32_v1",      "int4_tinygemm_g32", "int4_plain_g32",   "int4_plain_sym_g32",
      "int4_int32_g32",  "gguf_proto",       "fp8_row",           "fp8_e4m3_tensor",  "fp8_e5m2_row",
      "fp8_e5m2_g32",    "fp8_sparse24_row", "tinyq_w8a32",       "tinyq_w8a16",      "nvfp4_one_level",
      "nvfp4_two_level", "nf4_b64_s256",     "int4_e4m3_g128",    "float_weight"};
  for (const char* element : {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4"})
    for (const char* mode : {"_floor", "_ceil", "_even", "_rceil"})
      names.push_back(std::string(element) + mode);
  for (const char* bits : {"1", "2", "4", "8"})
    for (const char* group : {"_g32", "_g32_s32"})
      for (const char* mapping : {"_sym", "_symnc", "_asym"})
        names.push_back(std::string("intx_b") + bits + group + mapping);
  for (const std::string& name : names) {
    const Scheme* scheme = find_scheme(name);
    if (scheme == nullptr) throw std::logic_error("no scheme " + name);
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      for (const Layout layout : scheme->layouts()) {
        const bool own_recipe = layout == kPlain || layout == "mslk" || layout == "tile_packed_4d";
        if (own_recipe && small_shape(*scheme, dtype, layout)) all.push_back({name, dtype, layout});
      }
  }
  return all;
}

class WrittenTest : public testing::TestWithParam<WrittenSubject> {};

TEST_P(WrittenTest, EndsWhereAWeightEnds) {
  const Scheme& scheme = *find_scheme(GetParam().scheme);
  const WeightShape shape = *small_shape(scheme, GetParam().dtype, GetParam().layout);
  const Written written = scheme.written(shape, GetParam().layout);
  std::map<PartName, Ends> seen;
  std::set<size_t> cases;
  int accepted = 0;
  for (const Weight& weight : weights_for(scheme, shape)) {
    const std::vector<std::byte> bytes = stored(weight, shape.dtype);
    Planes planes;
    try {
      planes = scheme.quantize({shape.dtype, shape.n, shape.k, bytes}, GetParam().layout);
    } catch (const std::invalid_argument&) {  // not 2:4 sparse
      continue;
    }
    ++accepted;
    const std::vector<NotWritten> beyond = not_written(scheme, planes, shape, GetParam().layout);
    ASSERT_TRUE(beyond.empty()) << beyond.front().plane << " " << beyond.front().byte_offset << ": "
                                << beyond.front().value << "; " << beyond.front().why << "; weights "
                                << weight[0] << " " << weight[1] << " .. " << weight.back();
    note(scheme, planes, shape, written, seen, cases);
  }
  EXPECT_GT(accepted, 10);
  for (const auto& [part, ends] : stated_ends(written))
    EXPECT_EQ(ends.text(), seen[part].text()) << part.first << " from element " << part.second;
  for (size_t c = 0; c < written.size(); ++c)
    EXPECT_TRUE(cases.contains(c)) << "no weight here shows the case: " << written[c].when;
}

std::string name_of(const testing::TestParamInfo<WrittenSubject>& info) {
  return info.param.scheme + "_" + std::string(dtype_name(info.param.dtype)) + "_" +
         std::string(info.param.layout.name());
}
INSTANTIATE_TEST_SUITE_P(Recipes, WrittenTest, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace qcts
