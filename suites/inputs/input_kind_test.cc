// SPDX-License-Identifier: BSD-3-Clause
// Protects the kind of an input: every value that a generator draws is in the range from which the kind
// follows.
#include "suites/inputs/input_kind.h"

#include <gtest/gtest.h>

#include <set>

#include "reference/schemes/not_written.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

// One scheme of each family, and those whose recipes differ within it.
const char* const kSubjects[] = {
    "int8_row",           "int8_g32",         "int8_row_reduced",  "int8_row_v1",       "intx_b4_g32_sym",
    "intx_b4_g32_asym",   "intx_b1_g32_sym",  "intx_b8_axis_asym", "int4_tinygemm_g32", "int4_plain_g32",
    "int4_plain_sym_g32", "int4_int32_g32",   "gguf_proto",        "fp8_row",           "fp8_e4m3_tensor",
    "fp8_e5m2_g32",       "fp8_sparse24_row", "tinyq_w8a32",       "tinyq_w8a16",       "mxfp8_e4m3_floor",
    "mxfp4_ceil",         "mxfp6_e2m3_rceil", "nvfp4_one_level",   "nvfp4_two_level",   "nf4_b64_s256",
    "int4_e4m3_g128",     "float_weight"};

class InputKindTest : public testing::TestWithParam<const char*> {};

// The ranges of one plane's elements from `first` on: drawn if the generator states any, otherwise written.
std::vector<ValueRange> ranges_of(const Scheme& scheme, const WeightShape& shape, Policy activation,
                                  const std::vector<WrittenRange>& drawn, const WrittenRange& part) {
  std::vector<ValueRange> ranges;
  const auto take = [&](const std::vector<WrittenRange>& from) {
    for (const WrittenRange& range : from)
      if (range.plane == part.plane && (range.step == 1 || range.first == part.first))
        ranges.push_back(range.values);
  };
  take(drawn);
  if (!ranges.empty()) return ranges;
  for (const WrittenCase& each : scheme.written(shape)) take(each.ranges);
  take(scheme.policy_ranges(shape, activation));
  return ranges;
}

void expect_drawn(const Scheme& scheme, Op op, const Synthetic& input) {
  const Generated made = generate(scheme, op, kPlain, input, input.seed);
  const std::vector<WrittenRange> drawn = drawn_ranges(scheme, op, input);
  std::vector<PlaneSpec> specs = scheme.plane_specs(input.weight);
  for (PlaneSpec& spec : scheme.policy_specs(input.weight, input.activation)) specs.push_back(spec);
  std::vector<WrittenRange> parts = scheme.policy_ranges(input.weight, input.activation);
  const Written written = scheme.written(input.weight);
  if (op != Op::quantize_activation)  // which reads only the policy's planes
    for (const WrittenRange& range : written.front().ranges) parts.push_back(range);
  for (const WrittenRange& part : parts) {
    const PlaneSpec& spec = *std::ranges::find(specs, part.plane, &PlaneSpec::name);
    const std::vector<ValueRange> ranges = ranges_of(scheme, input.weight, input.activation, drawn, part);
    const std::vector<double> numbers =
        stored_numbers(scheme, spec, input.weight, plane(made.input.planes, spec.name).bytes);
    for (size_t i = static_cast<size_t>(part.first); i < numbers.size(); i += static_cast<size_t>(part.step))
      ASSERT_TRUE(
          std::ranges::any_of(ranges, [&](const ValueRange& range) { return range.holds(numbers[i]); }))
          << input_name(input, op, kPlain) << ": " << spec.name << "[" << i << "] is " << numbers[i];
  }
}

TEST_P(InputKindTest, StatesEveryDrawnValue) {
  const Scheme& scheme = *find_scheme(GetParam());
  size_t asked = 0;
  for (const Op op : {Op::dequantize, Op::linear, Op::quantize_activation}) {
    std::set<std::tuple<Generator, DType, std::string, int64_t>> seen;  // the first shape of each
    for (const Synthetic& input : synthetic_inputs(Kind::numerics, op, scheme, kPlain, InputSet::all)) {
      const bool large = input.weight.n * input.weight.k > 100000;
      const int64_t m = input.generator == Generator::given_scales ? input.m : 0;
      if (large || !seen.emplace(input.generator, input.weight.dtype, input.activation.name(), m).second)
        continue;
      expect_drawn(scheme, op, input);
      ++asked;
    }
  }
  EXPECT_GT(asked, 5u);
}
INSTANTIATE_TEST_SUITE_P(Schemes, InputKindTest, testing::ValuesIn(kSubjects),
                         [](const auto& info) { return std::string(info.param); });

KindOfInput kind_in(const char* scheme, Op op, Generator generator, DType dtype = DType::bfloat16) {
  return kind_of_input(*find_scheme(scheme), op, {generator, {dtype, 40, 256}, 5, 1, {}});
}

TEST(InputKind, FollowsFromTheRecipe) {
  const auto kind = [](auto... words) { return kind_in(words...).kind; };
  EXPECT_EQ(InputKind::reachable, kind("int8_row", Op::linear, Generator::noise));
  EXPECT_EQ(InputKind::representable, kind("int8_row", Op::linear, Generator::zero_points));
  EXPECT_EQ(InputKind::reachable, kind("int4_int32_g32", Op::linear, Generator::zero_points));
  EXPECT_EQ(InputKind::reachable, kind("intx_b4_g32_asym", Op::dequantize, Generator::zero_points));
  EXPECT_EQ(InputKind::representable, kind("intx_b4_g32_sym", Op::dequantize, Generator::zero_points));
  EXPECT_EQ(InputKind::hostile, kind("int8_row", Op::linear, Generator::non_finite));
  EXPECT_EQ(InputKind::reachable, kind("int8_row", Op::quantize, Generator::non_finite));
  EXPECT_EQ(InputKind::reachable, kind("fp8_row", Op::linear, Generator::tiny_scales, DType::float32));
  EXPECT_EQ(InputKind::representable, kind("int8_row", Op::linear, Generator::tiny_scales));
  EXPECT_EQ(InputKind::representable, kind("int8_row_reduced", Op::dequantize, Generator::all_codes));
  EXPECT_EQ(InputKind::hostile, kind("mxfp8_e4m3_floor", Op::dequantize, Generator::all_codes));
}

TEST(InputKind, NamesTheValueOutside) {
  EXPECT_EQ("zero_point: draws -128 .. 127, the recipe writes 0",
            kind_in("int8_row", Op::linear, Generator::zero_points).outside);
}

}  // namespace
}  // namespace qcts
