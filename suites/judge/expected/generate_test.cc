// SPDX-License-Identifier: BSD-3-Clause
// Tests that inputs have the properties their names promise; otherwise the mutants they target would survive.
#include "suites/inputs/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "kernels/registry.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"
#include "suites/inputs/input_families.h"
#include "suites/inputs/inputs.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {
namespace {

class GenerateForScheme : public testing::TestWithParam<size_t> {
 protected:
  const Scheme& scheme() const { return *schemes()[GetParam()]; }
  int64_t k() const { return 3 * std::max<int64_t>(scheme().group(), 32); }
};

class ExactSumsForScheme : public GenerateForScheme {};

void expect_exact_sums(const Scheme& scheme, const Synthetic& synthetic) {
  const Generated made = generate(scheme, Op::linear, kPlain, synthetic, 11);
  EXPECT_GT(made.exact_bits, 0);
  const LinearReference reference(made.input);
  size_t nonzero = 0;
  for (const Bounded& want : reference.bounds({.accumulator = DType::float64})) {
    EXPECT_EQ(round_to(DType::bfloat16, want.value), want.value);
    nonzero += want.value != 0;
  }
  EXPECT_GT(nonzero, 5u * 37u / 2);
  bool odd = false;
  for (const ExactWeight& weight : reference.row(0))
    odd = odd || std::fmod(std::ldexp(weight.scale, 20), 3) == 0;
  EXPECT_TRUE(odd) << "power-of-two scales hide reading a scale in a narrower type";
}

TEST_P(ExactSumsForScheme, ExactSumsAreExactInTheNarrowestType) {
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    const WeightShape weight{dtype, 37, k()};
    expect_exact_sums(scheme(), {Generator::exact_sums, weight, 5, 11});
    if (has_outliers(scheme(), weight)) expect_exact_sums(scheme(), {Generator::outliers, weight, 5, 11});
  }
}

TEST_P(ExactSumsForScheme, TiedSumsLieHalfWayBetweenTwoNumbers) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const WeightShape weight{dtype, 37, k()};
    if (scheme().refusal(weight)) continue;
    const Generated made = generate(scheme(), Op::linear, kPlain, {Generator::tied_sums, weight, 5, 11}, 11);
    const LinearReference reference(made.input);
    size_t ties = 0;
    for (const double sum : reference.sums()) {
      const double nearest = round_to(dtype, sum), other = 2 * sum - nearest;
      ties += nearest != sum && round_to(dtype, other) == other;
    }
    EXPECT_GT(ties, 10u) << dtype_name(dtype);
  }
}

TEST(Generate, SomeHugeWeightsOverflow) {
  const WeightShape weight{DType::float16, 40, 96};
  const Scheme& scheme = *find_scheme("int8_g32");
  Generated made = generate(scheme, Op::dequantize, kPlain, {Generator::huge_weights, weight, 1, 11}, 11);
  const KernelAnswer right = test_vector_for(std::move(made.input)).expected;
  const std::vector<double> y = load_doubles(weight.dtype, right.y);
  const auto infinite = std::ranges::count_if(y, [](double v) { return std::isinf(v); });
  EXPECT_GT(infinite, 0);
  EXPECT_LT(infinite, std::ssize(y) / 2);
}

// A signed 16-bit sum of two products holds all of them but 2 * 128 * 128.
TEST(Generate, EndPairsReachTheLargestPairOfProducts) {
  for (const char* name : {"int8_row", "int8_tensor"}) {
    const Scheme& scheme = *find_scheme(name);
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
      Generated made =
          generate(scheme, Op::linear, kPlain,
                   {Generator::end_pairs, {dtype, 37, 216}, 9, 11, scheme.policy_named("dyn_row_sym")}, 11);
      const Planes x = scheme.quantize_activation({dtype, 9, 216, made.input.x}, made.input.activation, {});
      const auto ends = [](const Planes& planes) {
        return std::ranges::count(planes.front().bytes, std::byte{0x80});
      };
      EXPECT_EQ(ends(x), 5 * 216) << name << " " << dtype_name(dtype);
      EXPECT_EQ(ends(made.input.planes), 37 * 72) << name << " " << dtype_name(dtype);
    }
  }
}

TEST(Generate, NanScalesHavePayloadsAndInfinities) {
  const Generated made = generate(*find_scheme("int8_row"), Op::dequantize, kPlain,
                                  {Generator::nan_scales, {DType::bfloat16, 37, 216}, 1, 11}, 11);
  std::multiset<uint32_t> found;
  for (const Plane& plane : made.input.planes)
    for (size_t i = 0; plane.name == "scale" && i < plane.bytes.size(); i += sizeof(uint32_t)) {
      uint32_t bits = 0;
      std::memcpy(&bits, &plane.bytes[i], sizeof bits);
      found.insert(bits);
    }
  EXPECT_EQ(found.size(), 37u);
  for (const uint32_t bits : {0x7FC12345u, 0xFF812345u, 0x7F800000u, 0xFF800000u})
    EXPECT_GE(found.count(bits), 4u) << std::hex << bits;
}

TEST(Generate, TinySumsAreSubnormalInEveryOtherRow) {
  for (const char* name : {"int8_row", "int4_plain_g64", "int8_g32", "fp8_row", "mxfp8_e4m3_floor"})
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
      const Scheme& scheme = *find_scheme(name);
      const WeightShape weight{dtype, 37, 192};
      if (scheme.refusal(weight)) continue;
      const Generated made = generate(scheme, Op::linear, kPlain, {Generator::tiny_sums, weight, 5, 11}, 11);
      const std::vector<double> sums = LinearReference(made.input).sums();
      const double least = float_format(dtype).min_subnormal, normal = float_format(dtype).min_normal;
      size_t subnormal = 0;
      for (size_t i = 0; i < 37; ++i)
        subnormal += std::fabs(sums[i]) > 2 * least && std::fabs(sums[i]) < normal;
      EXPECT_GT(subnormal, 20u) << name << " " << dtype_name(dtype);
    }
}

// Adds in the order of k, keeping `bits` below the larger of the two exponents, as a tensor core does.
double sum_with(int bits, std::span<const ExactWeight> row, std::span<const double> x) {
  double sum = 0;
  for (size_t k = 0; k < row.size(); ++k) {
    const double term = (row[k].product + row[k].zero) * x[k],
                 larger = std::max(std::fabs(sum), std::fabs(term));
    if (larger == 0) continue;
    const int lowest = std::ilogb(larger) - bits;
    const auto cut = [&](double value) { return std::ldexp(std::trunc(std::ldexp(value, -lowest)), lowest); };
    sum = cut(cut(sum) + cut(term));
  }
  return sum;
}

// Rows 0 and 1 of x have 2^22 units, rows 2 and 3 2^12, rows 4 and 5 2^15.
TEST_P(ExactSumsForScheme, SwampedSumsAreExactWithTheBitsTheyNameAndLoseTermsWithFewer) {
  const WeightShape weight{DType::bfloat16, 37, k()};
  if (!has_outliers(scheme(), weight)) return;  // tested below: most schemes have them
  const Generated made = generate(scheme(), Op::linear, kPlain, {Generator::swamped, weight, 8, 11}, 11);
  const LinearReference reference(made.input);
  const std::vector<Bounded> want = reference.bounds({.accumulator = DType::float64});
  std::map<int64_t, int> lost_with_21, lost_with_13, lost_with_10;
  for (int64_t i = 0; i < made.input.m; ++i)
    for (int64_t n = 0; n < weight.n; ++n) {
      const double exact = want[static_cast<size_t>(i * weight.n + n)].value;
      EXPECT_EQ(round_to(DType::bfloat16, exact), exact);
      EXPECT_EQ(sum_with(made.exact_bits, reference.row(n), reference.x(i)), exact);
      lost_with_21[i] += sum_with(21, reference.row(n), reference.x(i)) != exact;
      lost_with_13[i] += sum_with(13, reference.row(n), reference.x(i)) != exact;
      lost_with_10[i] += sum_with(10, reference.row(n), reference.x(i)) != exact;
    }
  for (const int64_t i : {0, 1}) EXPECT_GT(lost_with_21[i], 5) << "row " << i;
  for (const int64_t i : {0, 1, 4, 5, 6, 7}) EXPECT_GT(lost_with_13[i], 5) << "row " << i;
  for (const int64_t i : {2, 3}) EXPECT_GT(lost_with_10[i], 5) << "row " << i;
}

// Every non-anchor element of a boundary weight is next to a step of the quantizer: moving it up or down by
// one float changes its code.
TEST_P(GenerateForScheme, BoundaryWeightsLieAtSteps) {
  const WeightShape shape{DType::bfloat16, 6, k()};
  const std::vector<std::byte> weight = boundary_weight(scheme(), shape, 5);
  const std::vector<std::byte> meaning =
      scheme().dequantize(scheme().quantize({shape.dtype, shape.n, shape.k, weight}), shape);
  const int64_t group = scheme().group() == 0 ? shape.k : scheme().group();
  size_t at_step = 0, asked = 0;
  std::vector<std::byte> up = weight;
  for (int64_t i = 0; i < shape.n * shape.k; ++i)
    if (i % shape.k % group >= 2)
      store_float(shape.dtype, up, static_cast<size_t>(i),
                  load_float(shape.dtype, weight, static_cast<size_t>(i)) * (1 + 0x1p-7));
  const std::vector<std::byte> moved =
      scheme().dequantize(scheme().quantize({shape.dtype, shape.n, shape.k, up}), shape);
  for (int64_t i = 0; i < shape.n * shape.k; ++i) {
    if (i % shape.k % group < 2 || i % 3 != 0) continue;
    ++asked;
    const double before = load_float(shape.dtype, meaning, static_cast<size_t>(i));
    at_step += load_float(shape.dtype, weight, static_cast<size_t>(i)) < 0 ||
               before != load_float(shape.dtype, moved, static_cast<size_t>(i));
  }
  EXPECT_GT(static_cast<double>(at_step), 0.9 * static_cast<double>(asked));
}

// Under an activation policy x is quantized first, and the quantized x has the intended value.
TEST_P(ExactSumsForScheme, ExactSumsStayExactUnderEveryPolicy) {
  for (const ActivationInfo& policy : scheme().activations()) {
    const Synthetic synthetic{Generator::exact_sums, {DType::bfloat16, 37, k()}, 5, 11, policy};
    const Generated made = generate(scheme(), Op::linear, kPlain, synthetic, 11);
    const LinearReference reference(made.input);
    size_t nonzero = 0;
    for (const Bounded& want : reference.bounds({.accumulator = DType::float64})) {
      EXPECT_EQ(round_to(DType::bfloat16, want.value), want.value) << policy.name;
      nonzero += want.value != 0;
    }
    EXPECT_GT(nonzero, 5u * 37u / 2) << policy.name;
  }
}

// At each step of quantized x, half of the elements are on one side and half on the other.
TEST_P(GenerateForScheme, BoundaryRowsOfXLieAtSteps) {
  for (const ActivationInfo& policy : scheme().activations()) {
    if (policy.name == kWeightOnly) continue;
    const Synthetic synthetic{Generator::halfway, {DType::float32, 3, k()}, 4, 9, policy};
    const Generated made = generate(scheme(), Op::quantize_activation, kPlain, synthetic, 9);
    const Planes quantized = scheme().quantize_activation(made.input.x_matrix(), policy, made.input.planes);
    std::vector<std::byte> up = made.input.x;
    for (size_t i = 0; i < up.size() / 4; ++i)
      store_float(DType::float32, up, i, load_float(DType::float32, up, i) * (1 + 0x1p-20));
    const Planes moved =
        scheme().quantize_activation({DType::float32, 4, k(), up}, policy, made.input.planes);
    EXPECT_TRUE(first_difference(quantized[0], moved[0]).has_value()) << policy.name;
  }
}

TEST_P(GenerateForScheme, AllCodesHoldsEveryByte) {
  const Synthetic synthetic{Generator::all_codes, {DType::bfloat16, 16, k()}, 1, 1};
  const Generated made = generate(scheme(), Op::dequantize, kPlain, synthetic, 1);
  std::set<std::byte> seen(made.input.planes[0].bytes.begin(), made.input.planes[0].bytes.end());
  EXPECT_EQ(seen.size(), 256u);
}

// Returns the scale of the group at `first`. In a scheme with two scales, `scale` may be the row's: then
// returns the group's largest weight.
double size_of_group(std::span<const ExactWeight> row, int64_t first, int64_t group) {
  const auto at = static_cast<size_t>(first), length = static_cast<size_t>(group);
  if (group == 0 || row[0].scale != row[length].scale) return row[at].scale;
  double largest = 0;
  for (const ExactWeight& weight : row.subspan(at, length))
    largest = std::max(largest, std::fabs(weight.product));
  return largest;
}

TEST_P(GenerateForScheme, NeighbouringScalesDifferFourfold) {
  const Synthetic synthetic{Generator::noise, {DType::bfloat16, 8, k()}, 1, 3};
  const Generated made = generate(scheme(), Op::linear, kPlain, synthetic, 3);
  const LinearReference reference(made.input);
  const int64_t group = scheme().group();
  for (int64_t r = 0; r + 1 < 8; ++r) {
    const double here = size_of_group(reference.row(r), 0, group);
    const double next =
        group == 0 ? reference.row(r + 1)[0].scale : size_of_group(reference.row(r), group, group);
    EXPECT_GT(std::fabs(std::log2(here / next)), 1.0) << "row " << r;
  }
}

TEST_P(GenerateForScheme, TheSameSeedGivesTheSameInput) {
  const Synthetic synthetic{Generator::noise, {DType::float16, 8, k()}, 2, 3};
  const Generated a = generate(scheme(), Op::linear, kPlain, synthetic, 3),
                  b = generate(scheme(), Op::linear, kPlain, synthetic, 3),
                  c = generate(scheme(), Op::linear, kPlain, synthetic, 4);
  EXPECT_EQ(a.input.x, b.input.x);
  EXPECT_EQ(a.input.planes[0].bytes, b.input.planes[0].bytes);
  EXPECT_NE(a.input.x, c.input.x);
}

// The table and the generators are written separately: every entry of the table must have a generator.
TEST_P(GenerateForScheme, EveryInputOfTheTableCanBeMade) {
  for (const LayoutInfo& layout : scheme().layouts()) {
    for (const Op op :
         {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear}) {
      const bool packs = op == Op::pack || op == Op::unpack;
      if (packs == (layout == kPlain)) continue;
      for (const Synthetic& input : synthetic_inputs(Kind::numerics, op, scheme(), layout, InputSet::few))
        EXPECT_NO_THROW(generate(scheme(), op, layout, input, input.seed)) << input_name(input, op, layout);
    }
  }
}

// Only schemes with a kernel have inputs: the reference is not tested against itself. These tests also need
// weights in three dtypes, different scales per row, and scales with an odd factor (not powers of two), which
// excludes schemes that store two of every four k.
std::vector<size_t> suited_schemes() {
  Registry registry;
  registry.add(builtin_provider());
  std::vector<size_t> suited;
  for (size_t i = 0; i < schemes().size(); ++i) {
    const Scheme& scheme = *schemes()[i];
    const int64_t k = 3 * std::max<int64_t>(scheme.group(), 32);
    bool suits = !registry.find(QCTS_OP_LINEAR, scheme.family()).empty() && scheme.family() != "fp8_sparse24";
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32})
      suits = suits && !scheme.refusal({dtype, 37, k});
    if (!suits) continue;
    for (const PlaneSpec& spec : scheme.plane_specs({DType::bfloat16, 37, k}))
      if (spec.name.starts_with("scale"))
        suits = numel_of(spec.shape) >= 37 && spec.dtype != DType::float8_e8m0fnu;
    if (suits) suited.push_back(i);
  }
  return suited;
}

// Can no maximum give the scheme a scale that is a power of two?
bool lacks_exact_sums(size_t index) {
  const Scheme& scheme = *schemes()[index];
  return !has_exact_sums(scheme, {DType::bfloat16, 37, 3 * std::max<int64_t>(scheme.group(), 32)});
}

std::vector<size_t> schemes_with_exact_sums() {
  std::vector<size_t> found = suited_schemes();
  std::erase_if(found, lacks_exact_sums);
  return found;
}

std::string scheme_of(const testing::TestParamInfo<size_t>& info) {
  return std::string(schemes()[info.param]->name());
}

INSTANTIATE_TEST_SUITE_P(Schemes, GenerateForScheme, testing::ValuesIn(suited_schemes()), scheme_of);
INSTANTIATE_TEST_SUITE_P(Schemes, ExactSumsForScheme, testing::ValuesIn(schemes_with_exact_sums()),
                         scheme_of);

TEST(Generate, OnlyKnownSchemesLackExactSums) {
  std::vector<std::string> lacking;
  for (const size_t index : suited_schemes())
    if (lacks_exact_sums(index)) lacking.emplace_back(schemes()[index]->name());
  EXPECT_THAT(lacking, testing::UnorderedElementsAre("int8_row_reduced", "int4_e4m3_g128", "int4_e4m3_g256"));
}

// A kernel that skips weights of zero gives a number where the answer is NaN.
TEST(Generate, ZeroCodesMeetWhatIsNotFinite) {
  std::set<std::string_view> families;
  for (const Scheme* scheme : schemes()) {
    WeightShape weight{DType::bfloat16, 37, 3 * std::max<int64_t>(scheme->group(), 32)};
    if (scheme->refusal(weight)) weight.n = 256;  // nf4: whole blocks of scales
    GeneratorSupport support(*scheme);
    if (scheme->refusal(weight) || !support.has(Op::linear, Generator::zero_codes, weight)) continue;
    families.insert(scheme->family());
    const Generated made =
        generate(*scheme, Op::linear, kPlain, {Generator::zero_codes, weight, 6, 5, {}}, 5);
    const LinearReference reference(made.input);
    for (int64_t n = 0; n < weight.n; ++n)
      EXPECT_EQ(std::isfinite(load_float(weight.dtype, made.input.bias, static_cast<uint64_t>(n))),
                n < weight.n - 3)
          << scheme->name();
    for (int64_t m = 0; m < 6; ++m) {
      size_t columns = 0, zeros = 0, others = 0;
      for (size_t k = 0; k < reference.x(m).size(); ++k) {
        if (std::isfinite(reference.x(m)[k])) continue;
        ++columns;
        for (int64_t n = 0; n < weight.n; ++n)
          ++(reference.row(n)[k].product + reference.row(n)[k].zero == 0 ? zeros : others);
      }
      EXPECT_EQ(columns, m % 2 == 0 ? 1u : 0u) << scheme->name() << " row " << m;
      EXPECT_EQ(zeros > 0 && others > 0, m % 2 == 0) << scheme->name() << " row " << m;
    }
  }
  EXPECT_THAT(families, testing::IsSupersetOf({"int8_row", "intx", "int4_tinygemm", "int4_plain", "fp8_row",
                                               "fp8", "tinyq", "mx", "nvfp4", "nf4"}));
}

TEST(Generate, OneHotColumnsReachBothEnds) {
  for (int64_t i = 0; i < 96; ++i) EXPECT_EQ(one_hot_column(i, 96, 96), i);
  EXPECT_EQ(one_hot_column(0, 5, 96), 0);
  EXPECT_EQ(one_hot_column(4, 5, 96), 95);
}

TEST(Generate, EveryGeneratorHasANameAndAPlaceInTheTable) {
  std::set<Generator> listed;
  for (const InputFamily& family : input_families()) listed.insert(family.generator);
  EXPECT_EQ(listed.size(), input_families().size());
  EXPECT_EQ(listed.size(), static_cast<size_t>(kGeneratorCount));
  for (const Generator generator : listed) EXPECT_EQ(find_generator(generator_name(generator)), generator);
  EXPECT_EQ(find_generator("long"), Generator::long_rows);
  EXPECT_EQ(find_generator("typo"), std::nullopt);
}

}  // namespace
}  // namespace qcts
