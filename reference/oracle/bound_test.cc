// SPDX-License-Identifier: BSD-3-Clause
// The bound must accept every kernel that rounds where it declares, and reject those that do not. Simulates
// both over thousands of rows: kernels in float32 with their declared roundings, in random order; then the
// same with one fault.
#include "reference/oracle/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using Random = std::mt19937_64;

// One row of a quantized weight, one row of activations.
struct LinearProblem {
  std::vector<ExactWeight> weights;
  std::vector<double> x;
  double bias = 0;
  int64_t group = 0;

  int64_t terms() const { return static_cast<int64_t>(x.size()); }
  int64_t group_elems() const { return group == 0 ? terms() : group; }
  LinearOracle oracle() const { return linear_oracle(weights, x, bias, group); }
};

struct ProblemSpec {
  const char* scheme;
  DType weight = DType::bfloat16;
  DType x = DType::bfloat16;
  bool bias = true;
  double x_scale = 1;  // a power of two
};

LinearProblem make_problem(const ProblemSpec& spec, int64_t k, uint64_t seed) {
  const Scheme& scheme = *find_scheme(spec.scheme);
  const WeightShape shape = {spec.weight, 1, k};
  const std::vector<std::byte> weight = noise_bytes(seed, static_cast<size_t>(k), spec.weight, 0x1p-4);
  const Planes planes = scheme.quantize({spec.weight, 1, k, weight});
  LinearProblem problem;
  problem.group = scheme.group();
  problem.weights.resize(static_cast<size_t>(k));
  scheme.exact_row(planes, shape, 0, problem.weights);
  for (int64_t i = 0; i < k; ++i)
    problem.x.push_back(round_to(spec.x, noise(seed + 1, static_cast<uint64_t>(i)) * spec.x_scale));
  if (spec.bias) problem.bias = round_to(spec.x, noise(seed + 2, 0) * spec.x_scale);
  return problem;
}

float as_bf16(float v) { return round_to(DType::bfloat16, v); }

// Sums `count` products in float32: in random order, in a random number of lanes that are added at the end,
// fused or not.
float dot(const std::function<float(int64_t)>& a, const std::function<float(int64_t)>& b, int64_t count,
          Random& random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  std::vector<float> lanes(size_t{1} << random() % 6);
  const bool fused = random() % 2;
  for (size_t i = 0; i < order.size(); ++i) {
    float& lane = lanes[i % lanes.size()];
    const float left = a(order[i]), right = b(order[i]);
    lane = fused ? std::fma(left, right, lane) : lane + left * right;
  }
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

float x_at(const LinearProblem& p, int64_t k) { return static_cast<float>(p.x[static_cast<size_t>(k)]); }

// A kernel: what it declares, its input, and its computation.
struct Kernel {
  const char* name;
  LinearStages stages;
  ProblemSpec spec;
  DType y;
  std::function<float(const LinearProblem&, Random&)> run;
};

// Forms weights in float32, with two roundings each.
float weight_f32(const LinearProblem& p, int64_t k) {
  const ExactWeight& w = p.weights[static_cast<size_t>(k)];
  const float product = static_cast<float>(w.code) * static_cast<float>(w.scale);
  return product + static_cast<float>(w.zero);
}

float run_f32(const LinearProblem& p, Random& random) {
  const float sum = dot([&](int64_t k) { return weight_f32(p, k); }, [&](int64_t k) { return x_at(p, k); },
                        p.terms(), random);
  return sum + static_cast<float>(p.bias);
}

// Dequantizes to bfloat16, then multiplies; adds the bias to the rounded sum, as torch's linear without a
// fused bias does.
float run_bf16_weights(const LinearProblem& p, Random& random) {
  const float sum = dot([&](int64_t k) { return as_bf16(weight_f32(p, k)); },
                        [&](int64_t k) { return x_at(p, k); }, p.terms(), random);
  return as_bf16(sum) + static_cast<float>(p.bias);
}

// torchao 0.18.0 Int8Tensor: m = x @ q.T rounded to bfloat16, times scale.to(bfloat16), plus bias, each
// rounded to bfloat16.
float run_int8_torchao(const LinearProblem& p, Random& random) {
  const float sum = dot([&](int64_t k) { return static_cast<float>(p.weights[static_cast<size_t>(k)].code); },
                        [&](int64_t k) { return x_at(p, k); }, p.terms(), random);
  return as_bf16(as_bf16(sum) * as_bf16(static_cast<float>(p.weights[0].scale))) + static_cast<float>(p.bias);
}

// Sums a group's codes and activations separately, then scales.
float run_group_sums(const LinearProblem& p, Random& random) {
  float sum = 0;
  for (int64_t first = 0; first < p.terms(); first += p.group_elems()) {
    const ExactWeight& w = p.weights[static_cast<size_t>(first)];
    const auto x = [&](int64_t k) { return x_at(p, first + k); };
    const float codes =
        dot([&](int64_t k) { return static_cast<float>(p.weights[static_cast<size_t>(first + k)].code); }, x,
            p.group_elems(), random);
    const float ones = dot([](int64_t) { return 1.0f; }, x, p.group_elems(), random);
    sum += codes * static_cast<float>(w.scale);
    sum += ones * static_cast<float>(w.zero);
  }
  return sum + static_cast<float>(p.bias);
}

// Casts float32 activations to bfloat16 on input.
float run_cast_x(const LinearProblem& p, Random& random) {
  const float sum = dot([&](int64_t k) { return weight_f32(p, k); },
                        [&](int64_t k) { return as_bf16(x_at(p, k)); }, p.terms(), random);
  return sum + static_cast<float>(p.bias);
}

float flushed(float v) { return std::fabs(v) < 0x1p-126f ? 0.0f : v; }

// Flushes every subnormal operand and result to zero.
float run_flush(const LinearProblem& p, Random&) {
  float sum = 0;
  for (int64_t k = 0; k < p.terms(); ++k)
    sum = flushed(sum + flushed(flushed(weight_f32(p, k)) * flushed(x_at(p, k))));
  return flushed(sum);
}

const std::optional<DType> kF32 = DType::float32, kBf16 = DType::bfloat16, kF16 = DType::float16;

std::vector<Kernel> right_kernels() {
  const LinearStages f32 = {.weight_cast = kF32, .product_cast = kF32};
  const LinearStages bf16_weights = {.weight_cast = kBf16, .product_cast = kF32, .output_cast = kBf16};
  const LinearStages torchao = {.scale_cast = kBf16,
                                .product_cast = kF32,
                                .partial_cast = kBf16,
                                .output_cast = kBf16,
                                .scale_after_sum = true};
  const LinearStages sums = {.product_cast = kF32, .scale_after_sum = true};
  const LinearStages cast_x = {.x_cast = kBf16, .weight_cast = kF32, .product_cast = kF32};
  const LinearStages flush = {.weight_cast = kF32, .product_cast = kF32, .flush_subnormals = true};
  return {
      {"int4_f32_y_f32", f32, {"int4_tinygemm_g32"}, DType::float32, run_f32},
      {"int4_f32_y_bf16", f32, {"int4_tinygemm_g64"}, DType::bfloat16, run_f32},
      {"int8_f32_y_f32", f32, {"int8_row", DType::float32, DType::float32}, DType::float32, run_f32},
      {"fp8_f32_y_f16", f32, {"fp8_row", DType::float16, DType::float16}, DType::float16, run_f32},
      {"fp8_bf16_weights", bf16_weights, {"fp8_row"}, DType::bfloat16, run_bf16_weights},
      {"int4_bf16_weights", bf16_weights, {"int4_tinygemm_g128"}, DType::bfloat16, run_bf16_weights},
      {"int8_torchao", torchao, {"int8_row"}, DType::bfloat16, run_int8_torchao},
      {"int4_group_sums", sums, {"int4_tinygemm_g32"}, DType::float32, run_group_sums},
      {"int8_row_sum", sums, {"int8_row"}, DType::float32, run_group_sums},
      {"int8_cast_x", cast_x, {"int8_row", DType::float32, DType::float32}, DType::float32, run_cast_x},
      {"int8_flush",
       flush,
       {"int8_row", DType::float32, DType::float32, false, 0x1p-124},
       DType::float32,
       run_flush},
      {"int8_subnormal",
       f32,
       {"int8_row", DType::float32, DType::float32, false, 0x1p-124},
       DType::float32,
       run_f32},
  };
}

LinearBound bound_of(const Kernel& kernel, const LinearOracle& oracle) {
  const bool int4 = std::string_view(kernel.spec.scheme).starts_with("int4");
  return linear_bound(oracle, kernel.stages,
                      {kernel.spec.x, int4 ? kernel.spec.weight : DType::float32, kernel.y});
}

class RightKernel : public testing::TestWithParam<Kernel> {};

TEST_P(RightKernel, IsNeverRefused) {
  const Kernel& kernel = GetParam();
  Random random(20260731);
  double ratio_sum = 0, ratio_max = 0;
  int rows = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const int64_t lengths[] = {128, 256, 512, 1024};
    const LinearProblem problem = make_problem(kernel.spec, lengths[seed % 4], 1000 * seed);
    const LinearOracle oracle = problem.oracle();
    const LinearBound bound = bound_of(kernel, oracle);
    const double got = round_to(kernel.y, static_cast<double>(kernel.run(problem, random)));
    ASSERT_TRUE(accepts(oracle, bound, got)) << "row " << seed << ": y " << oracle.y << ", got " << got
                                             << ", allowed [" << bound.low << ", " << bound.high << "]";
    const double ratio = std::fabs(got - oracle.y) / bound.bound;
    ratio_sum += ratio;
    ratio_max = std::max(ratio_max, ratio);
    ++rows;
  }
  RecordProperty("mean_error_over_bound", std::to_string(ratio_sum / rows));
  RecordProperty("max_error_over_bound", std::to_string(ratio_max));
  std::printf("%-18s error / bound: mean %.4f, largest %.3f over %d rows\n", kernel.name, ratio_sum / rows,
              ratio_max, rows);
  EXPECT_GT(ratio_max, 0.001) << "a bound a thousand times too wide proves nothing";
}

INSTANTIATE_TEST_SUITE_P(Simulated, RightKernel, testing::ValuesIn(right_kernels()),
                         [](const auto& info) { return std::string(info.param.name); });

// One planted fault in the kernel, or in the problem that it reads. The fault is caught if one of 32 outputs
// is refused.
struct LinearFault {
  const char* name;
  Kernel kernel;  // its declaration is correct
  int64_t k;
  std::function<void(LinearProblem&)> damage;  // changes what the kernel reads, not the oracle's copy
};

float run_f16_accumulator(const LinearProblem& p, Random&) {
  float sum = 0;
  for (int64_t k = 0; k < p.terms(); ++k) sum = round_to(DType::float16, sum + weight_f32(p, k) * x_at(p, k));
  return sum + static_cast<float>(p.bias);
}

float run_bf16_accumulator(const LinearProblem& p, Random&) {
  float sum = 0;
  for (int64_t k = 0; k < p.terms(); ++k) sum = as_bf16(sum + weight_f32(p, k) * x_at(p, k));
  return sum + static_cast<float>(p.bias);
}

float run_undeclared_bf16_weights(const LinearProblem& p, Random& random) {
  return dot([&](int64_t k) { return as_bf16(weight_f32(p, k)); }, [&](int64_t k) { return x_at(p, k); },
             p.terms(), random) +
         static_cast<float>(p.bias);
}

float run_truncating(const LinearProblem& p, Random& random) {
  const uint32_t bits = std::bit_cast<uint32_t>(run_f32(p, random)) & 0xFFFF0000;
  return std::bit_cast<float>(bits);
}

void nothing(LinearProblem&) {}

void next_groups_scale(LinearProblem& p) {
  const std::vector<ExactWeight> right = p.weights;
  for (size_t k = 0; k < right.size(); ++k) {
    const size_t other = (k + static_cast<size_t>(p.group)) % right.size();
    p.weights[k].scale = right[other].scale;
    p.weights[k].zero = right[other].zero;
  }
}

void drop_last(LinearProblem& p) { p.x.back() = 0; }
void one_code_more(LinearProblem& p) { p.weights[p.weights.size() / 2].code += 1; }
void swap_nibbles(LinearProblem& p) {
  for (size_t k = 0; k + 1 < p.weights.size(); k += 2) std::swap(p.weights[k].code, p.weights[k + 1].code);
}
void no_zero_point(LinearProblem& p) {
  for (ExactWeight& w : p.weights) w.zero = 0;
}
void no_bias(LinearProblem& p) { p.bias = 0; }

std::vector<LinearFault> faults() {
  const LinearStages f32 = {.weight_cast = kF32, .product_cast = kF32};
  const LinearStages bf16_weights = {.weight_cast = kBf16, .product_cast = kF32, .output_cast = kBf16};
  const LinearStages torchao = {.scale_cast = kBf16,
                                .product_cast = kF32,
                                .partial_cast = kBf16,
                                .output_cast = kBf16,
                                .scale_after_sum = true};
  const Kernel int4 = {"", f32, {"int4_tinygemm_g32"}, DType::bfloat16, run_f32};
  const Kernel int4_bf16 = {"", bf16_weights, {"int4_tinygemm_g32"}, DType::bfloat16, run_bf16_weights};
  const Kernel int8 = {"", torchao, {"int8_row"}, DType::bfloat16, run_int8_torchao};
  const auto with = [](Kernel kernel, DType y, std::function<float(const LinearProblem&, Random&)> run) {
    kernel.y = y;
    kernel.run = std::move(run);
    return kernel;
  };
  return {
      {"wrong_group", int4, 1024, next_groups_scale},
      {"wrong_group_bf16_weights", int4_bf16, 256, next_groups_scale},
      {"dropped_tail", int4, 1024, drop_last},
      {"dropped_tail_bf16_weights", int4_bf16, 128, drop_last},
      {"dropped_tail_int8", int8, 512, drop_last},
      {"code_off_by_one", int4, 512, one_code_more},
      {"swapped_nibbles", int4, 1024, swap_nibbles},
      {"swapped_nibbles_bf16_weights", int4_bf16, 1024, swap_nibbles},
      {"swapped_codes_int8", int8, 1024, swap_nibbles},
      {"zero_point_ignored", int4_bf16, 1024, no_zero_point},
      {"bias_ignored", int4_bf16, 128, no_bias},
      {"f16_accumulator", with(int4, DType::float32, run_f16_accumulator), 1024, nothing},
      {"bf16_accumulator", with(int4, DType::bfloat16, run_bf16_accumulator), 1024, nothing},
      {"undeclared_bf16_weights", with(int4, DType::float32, run_undeclared_bf16_weights), 256, nothing},
      {"truncated_output", with(int4, DType::bfloat16, run_truncating), 256, nothing},
  };
}

class PlantedFault : public testing::TestWithParam<LinearFault> {};

TEST_P(PlantedFault, IsCaughtInEveryCallOf32Outputs) {
  const LinearFault& fault = GetParam();
  Random random(7);
  int refused_outputs = 0;
  for (uint64_t call = 0; call < 20; ++call) {
    int refused = 0;
    for (uint64_t output = 0; output < 32; ++output) {
      LinearProblem problem =
          make_problem(fault.kernel.spec, fault.k, 1'000'000 + 1000 * (32 * call + output));
      const LinearOracle oracle = problem.oracle();
      fault.damage(problem);
      const double got = round_to(fault.kernel.y, static_cast<double>(fault.kernel.run(problem, random)));
      if (!accepts(oracle, bound_of(fault.kernel, oracle), got)) ++refused;
    }
    EXPECT_GT(refused, 0) << "call " << call;
    refused_outputs += refused;
  }
  std::printf("%-28s refused outputs: %.1f %%\n", fault.name, refused_outputs / 6.4);
}

INSTANTIATE_TEST_SUITE_P(Simulated, PlantedFault, testing::ValuesIn(faults()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LinearBound, EveryDeclaredRoundingWidensAndNoneNarrows) {
  const LinearProblem problem = make_problem({"int4_tinygemm_g32", DType::float32, DType::float32}, 256, 1);
  const LinearOracle oracle = problem.oracle();
  const LinearDTypes dtypes = {DType::float32, DType::float32, DType::float32};
  const auto error = [&](const LinearStages& stages) { return linear_bound(oracle, stages, dtypes).error; };
  const double strict = error({});
  EXPECT_GT(error({.x_cast = kBf16}), strict);
  EXPECT_GT(error({.scale_cast = kBf16}), strict);
  EXPECT_GT(error({.weight_cast = kBf16}), error({.weight_cast = kF16}));
  EXPECT_GT(error({.weight_cast = kF32}), strict);
  EXPECT_GT(error({.product_cast = kF32}), strict);
  EXPECT_EQ(error({.x_cast = kF32, .scale_cast = kF32}), strict)
      << "a cast that changes nothing costs nothing";
  EXPECT_LT(error({.accumulator = DType::float64}), strict);
  EXPECT_GT(error({.partial_cast = kBf16, .scale_after_sum = true}), error({.scale_after_sum = true}));
  const LinearOracle tiny =
      make_problem({"int8_row", DType::float32, DType::float32, false, 0x1p-120}, 256, 1).oracle();
  EXPECT_GT(linear_bound(tiny, {.flush_subnormals = true}, dtypes).error,
            linear_bound(tiny, {}, dtypes).error);
  EXPECT_THROW(error({.accumulator = DType::float16}), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
