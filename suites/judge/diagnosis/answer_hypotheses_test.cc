// SPDX-License-Identifier: BSD-3-Clause
// Protects the sentence that says what is wrong: a kernel with exactly one mistake gets exactly its
// name, a right one and one with two mistakes get none.
#include "suites/judge/diagnosis/answer_hypotheses.h"

#include <bit>
#include <cmath>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"

namespace qcts {
namespace {

// A kernel in float32, in the order of k, whose parts a test replaces.
struct MistakenKernel {
  std::function<void(KernelInput&)> read = [](KernelInput&) {};
  std::function<float(float sum, float term)> add = [](float sum, float term) { return sum + term; };
  std::function<double(DType, float)> store = [](DType dtype, float y) {
    return round_to(dtype, static_cast<double>(y));
  };
  // Changes all of y, [m, n], once it is stored.
  std::function<void(const KernelInput&, std::vector<double>&)> finish = [](const KernelInput&,
                                                                            std::vector<double>&) {};
  // Returns the row of x that row m takes.
  std::function<int64_t(const KernelInput&, int64_t)> row_of = [](const KernelInput&, int64_t m) {
    return m;
  };
};

std::vector<std::byte> y_of(KernelInput input, const MistakenKernel& kernel) {
  kernel.read(input);
  const auto n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  const std::vector<double> x = load_doubles(input.x_dtype, input.x);
  std::vector<double> y(static_cast<size_t>(input.m) * n);
  std::vector<ExactWeight> row(k);
  for (size_t c = 0; c < n; ++c) {
    input.scheme->exact_row(input.planes, input.weight, static_cast<int64_t>(c), row);
    for (size_t m = 0; m < static_cast<size_t>(input.m); ++m) {
      const auto from = static_cast<size_t>(kernel.row_of(input, static_cast<int64_t>(m)));
      float sum = 0;
      for (size_t i = 0; i < k; ++i)
        sum = kernel.add(
            sum, static_cast<float>(x[from * k + i]) * static_cast<float>(row[i].product + row[i].zero));
      if (!input.bias.empty()) sum += static_cast<float>(load_float(input.bias_dtype, input.bias, c));
      y[m * n + c] = kernel.store(input.y_dtype, sum);
    }
  }
  kernel.finish(input, y);
  std::vector<std::byte> bytes(y.size() * dtype_bytes(input.y_dtype));
  for (size_t i = 0; i < y.size(); ++i) store_float(input.y_dtype, bytes, i, y[i]);
  return bytes;
}

std::string named(const TestVector& test_vector, const MistakenKernel& kernel, HypothesesOf of) {
  const LinearReference reference(test_vector.input);
  const LinearStages stages;
  const Expectation expectation(test_vector, &reference, stages);
  const std::vector<std::byte> y = y_of(test_vector.input, kernel);
  const Finding finding = expectation.judge({y, {}});
  if (!finding.mismatch) return "right";
  const auto explanation =
      explain_answer(seen_linear(test_vector.input, expectation, stages, y), of, finding.mismatch->count);
  return explanation ? describe(*explanation) : "none";
}

struct NamedMistake {
  const char *test, *name;
  DType dtype;
  MistakenKernel kernel;
  Generator generator = Generator::noise;
  const char* region = "";
  const char* scheme = "int8_row";
};
void PrintTo(const NamedMistake& mistake, std::ostream* out) { *out << mistake.test; }

TestVector vector_for(const NamedMistake& mistake) {
  const Scheme& scheme = *find_scheme(mistake.scheme);
  Synthetic synthetic{mistake.generator, {mistake.dtype, 37, 217}, 5, 1};
  if (scheme.group() != 0) synthetic.weight.k = 4 * scheme.group();
  Generated made = generate(scheme, Op::linear, kPlain, synthetic, 1);
  TestVector test_vector = test_vector_for(std::move(made.input));
  test_vector.exact_bits = made.exact_bits;
  return test_vector;
}

class OneMistake : public testing::TestWithParam<NamedMistake> {};

TEST_P(OneMistake, GetsItsName) {
  const NamedMistake& mistake = GetParam();
  const TestVector test_vector = vector_for(mistake);
  const bool is_summary = std::string_view(mistake.name).find(" the right one") != std::string::npos;
  const std::string text =
      named(test_vector, mistake.kernel, is_summary ? answer_summaries : answer_hypotheses);
  EXPECT_THAT(text, testing::StartsWith("hypothesis: " + std::string(mistake.name) + " (predicts "));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("or else")));
  if (*mistake.region) {
    EXPECT_THAT(text, testing::EndsWith(", all in " + std::string(mistake.region)));
  }
}

TEST_P(OneMistake, WithAnotherGetsNone) {
  const NamedMistake& mistake = GetParam();
  MistakenKernel both = mistake.kernel;
  // A fault of single elements, as a race leaves them.
  both.finish = [first = mistake.kernel.finish](const KernelInput& input, std::vector<double>& y) {
    first(input, y);
    for (size_t i = 3; i < y.size(); i += 41) y[i] = 7 - 3 * y[i];
  };
  for (const HypothesesOf of : {answer_hypotheses, answer_summaries})
    EXPECT_EQ(named(vector_for(mistake), both, of), "none");
}

TEST_P(OneMistake, OnOneElementGetsNone) {
  const NamedMistake& mistake = GetParam();
  const TestVector test_vector = vector_for(mistake);
  const std::vector<double> right = load_doubles(mistake.dtype, y_of(test_vector.input, {}));
  MistakenKernel one = mistake.kernel;
  one.finish = [&](const KernelInput& input, std::vector<double>& y) {
    mistake.kernel.finish(input, y);
    for (size_t i = 1; i < y.size(); ++i) y[i] = right[i];
  };
  for (const HypothesesOf of : {answer_hypotheses, answer_summaries})
    EXPECT_THAT(named(test_vector, one, of), testing::AnyOf("none", "right"));
}

using Values = std::vector<double>;

// Changes the elements of a buffer of the input: the bias or x.
template <typename Change>
std::function<void(KernelInput&)> bias_as(Change change) {
  return [change](KernelInput& input) {
    const Values old = load_doubles(input.bias_dtype, input.bias);
    for (size_t i = 0; i < old.size(); ++i) store_float(input.bias_dtype, input.bias, i, change(old, i));
  };
}
// `change` gets x as numbers, which need not fit its type afterwards, and k.
template <typename Change>
std::function<void(KernelInput&)> x_as(Change change) {
  return [change](KernelInput& input) {
    Values x = load_doubles(input.x_dtype, input.x);
    change(x, static_cast<size_t>(input.weight.k));
    input.x_dtype = DType::float32;
    input.x.resize(x.size() * sizeof(float));
    for (size_t i = 0; i < x.size(); ++i) store_float(input.x_dtype, input.x, i, x[i]);
  };
}

void to_int8(double* values, size_t count) {
  double absmax = 0;
  for (size_t i = 0; i < count; ++i) absmax = std::max(absmax, std::fabs(values[i]));
  const float scale = static_cast<float>(absmax) / 127.0f;
  for (size_t i = 0; i < count; ++i)
    values[i] = std::nearbyint(static_cast<float>(values[i]) / scale) * scale;
}

double cut_to_16_bits(DType, float y) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(y) & 0xffff0000u);
}

MistakenKernel reads(std::function<void(KernelInput&)> read) {
  MistakenKernel kernel;
  kernel.read = std::move(read);
  return kernel;
}
MistakenKernel stores(std::function<double(DType, float)> store) {
  MistakenKernel kernel;
  kernel.store = std::move(store);
  return kernel;
}
MistakenKernel takes_row(std::function<int64_t(const KernelInput&, int64_t)> row_of) {
  MistakenKernel kernel;
  kernel.row_of = std::move(row_of);
  return kernel;
}
MistakenKernel sums_in(DType narrow) {
  MistakenKernel kernel;
  kernel.add = [narrow](float sum, float term) { return round_to(narrow, sum + term); };
  return kernel;
}
MistakenKernel finishes(std::function<void(const KernelInput&, Values&)> finish) {
  MistakenKernel kernel;
  kernel.finish = std::move(finish);
  return kernel;
}
MistakenKernel drops_tail(size_t tail) {
  return reads(x_as([tail](Values& x, size_t k) {
    for (size_t i = 0; i < x.size(); ++i)
      if (i % k >= k - tail) x[i] = 0;
  }));
}

std::vector<NamedMistake> mistakes() {
  const DType f32 = DType::float32, bf16 = DType::bfloat16, f16 = DType::float16;
  return {
      {"truncated", "y rounded toward zero", bf16, stores(cut_to_16_bits)},
      {"truncated_int4", "y rounded toward zero", bf16, stores(cut_to_16_bits), Generator::noise, "",
       "int4_tinygemm_g32"},
      {"through_bf16", "y rounded to bfloat16 first", f32,
       stores([](DType, float y) { return round_to(DType::bfloat16, static_cast<double>(y)); })},
      {"cut_to_bf16", "y truncated to bfloat16 first", f32, stores(cut_to_16_bits)},
      {"through_f16", "y rounded to float16 first", f32,
       stores([](DType, float y) { return round_to(DType::float16, static_cast<double>(y)); })},
      {"f16_through_bf16", "y rounded to bfloat16 first", f16,
       stores([](DType, float y) { return round_to(DType::bfloat16, static_cast<double>(y)); })},
      {"nan_is_zero", "NaN replaced by 0", f32,
       stores([](DType, float y) { return std::isnan(y) ? 0.0 : y; }), Generator::non_finite},
      {"no_bias", "bias missing", bf16, reads([](KernelInput& input) { input.bias.clear(); })},
      {"no_bias_exact", "bias missing", bf16, reads([](KernelInput& input) { input.bias.clear(); }),
       Generator::exact_sums},
      {"bias_twice", "bias added twice", f32,
       reads(bias_as([](const Values& b, size_t i) { return 2 * b[i]; }))},
      {"bias_negative", "bias subtracted", f32,
       reads(bias_as([](const Values& b, size_t i) { return -b[i]; }))},
      {"bias_before", "bias of the previous column", f32,
       reads(bias_as([](const Values& b, size_t i) { return b[(i + b.size() - 1) % b.size()]; }))},
      {"bias_next", "bias of the next column", f32,
       reads(bias_as([](const Values& b, size_t i) { return b[std::min(i + 1, b.size() - 1)]; }))},
      {"bias_first", "bias of the first column", bf16,
       reads(bias_as([](const Values& b, size_t) { return b[0]; }))},
      {"bias_as_f16", "bias read as float16", bf16,
       reads([](KernelInput& input) { input.bias_dtype = DType::float16; })},
      {"row_before", "x of the previous row", f32,
       takes_row([](const KernelInput&, int64_t m) { return std::max<int64_t>(m - 1, 0); })},
      {"next_row", "x of the next row", bf16,
       takes_row([](const KernelInput& input, int64_t m) { return (m + 1) % input.m; })},
      {"first_row", "x of the first row", f32, takes_row([](const KernelInput&, int64_t) { return 0; })},
      {"last_row_reads_before", "x of the previous row", f32,
       takes_row([](const KernelInput& input, int64_t m) { return m + 1 == input.m ? m - 1 : m; }),
       Generator::noise, "the last row"},
      {"column_before", "y of the previous column", f32, finishes([](const KernelInput&, Values& y) {
         for (size_t r = 0; r < 5; ++r)
           std::rotate(y.begin() + static_cast<ptrdiff_t>(r * 37),
                       y.begin() + static_cast<ptrdiff_t>(r * 37 + 36),
                       y.begin() + static_cast<ptrdiff_t>(r * 37 + 37));
       })},
      {"transposed", "y written transposed", f32, finishes([](const KernelInput&, Values& y) {
         const Values right = y;
         for (size_t i = 0; i < y.size(); ++i) y[i % 37 * 5 + i / 37] = right[i];
       })},
      {"last_k", "the last element of k left out", f32, drops_tail(1)},
      {"tail_of_16", "the last k % 16 elements of k left out", f32, drops_tail(217 % 16)},
      {"tail_of_64", "the last k % 32 elements of k left out", bf16, drops_tail(217 % 64)},
      {"x_as_bf16", "x rounded to bfloat16", f32, reads(x_as([](Values& x, size_t) {
         for (double& value : x) value = round_to(DType::bfloat16, value);
       }))},
      {"x_as_int8_by_row", "x rounded to int8 by row", f32, reads(x_as([](Values& x, size_t k) {
         for (size_t i = 0; i < x.size(); i += k) to_int8(x.data() + i, k);
       }))},
      {"x_as_int8_by_tensor", "x rounded to int8 by tensor", f32,
       reads(x_as([](Values& x, size_t) { to_int8(x.data(), x.size()); }))},
      {"x_as_fp8", "x rounded to float8_e4m3fn without a scale", f32, reads(x_as([](Values& x, size_t) {
         for (double& value : x) value = round_to(DType::float8_e4m3fn, value);
       }))},
      {"sums_bf16", "sums kept in bfloat16", f32, sums_in(DType::bfloat16)},
      {"sums_f16", "sums kept in float16", f32, sums_in(DType::float16)},
      {"ratio", "y is 1.001 times the right one", f32,
       stores([](DType dtype, float y) { return round_to(dtype, 1.001 * y); })},
      {"ratio_bf16", "y is -1 times the right one", bf16,
       stores([](DType dtype, float y) { return round_to(dtype, -static_cast<double>(y)); })},
      {"difference", "y is 0.25 above the right one", f32,
       stores([](DType dtype, float y) { return round_to(dtype, y + 0.25); })},
  };
}

INSTANTIATE_TEST_SUITE_P(Kernels, OneMistake, testing::ValuesIn(mistakes()),
                         [](const auto& info) { return std::string(info.param.test); });

TEST(AnswerHypotheses, ARightKernelIsRight) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16})
    EXPECT_EQ(named(vector_for({"", "", dtype, {}}), {}, answer_hypotheses), "right");
}

// Overflow and subnormal results need sums of that size.
TEST(AnswerHypotheses, OverflowThatSaturatesIsNamed) {
  const TestVector test_vector = vector_for({"", "", DType::float16, {}, Generator::half_overflow});
  const auto saturating = stores([](DType dtype, float y) {
    const double largest = float_format(dtype).max;
    return std::clamp(round_to(dtype, static_cast<double>(y)), -largest, largest);
  });
  EXPECT_THAT(named(test_vector, saturating, answer_hypotheses),
              testing::StartsWith("hypothesis: overflow held at the largest number (predicts "));
}

TEST(AnswerHypotheses, FlushedResultsAreNamed) {
  TestVector test_vector = vector_for({"", "", DType::float16, {}});
  Values x = load_doubles(DType::float16, test_vector.input.x);
  for (size_t i = 0; i < x.size(); ++i) store_float(DType::float16, test_vector.input.x, i, x[i] * 0x1p-14);
  test_vector.input.bias.clear();
  const auto flushing = stores([](DType dtype, float y) {
    const double nearest = round_to(dtype, static_cast<double>(y));
    return std::fabs(nearest) < float_format(dtype).min_normal ? 0 : nearest;
  });
  EXPECT_THAT(named(test_vector, flushing, answer_hypotheses),
              testing::StartsWith("hypothesis: subnormal results flushed to zero (predicts "));
}

// dequantize has no sums: only its rounding and its values are looked at.
std::string named_dequantized(DType dtype,
                              const std::function<double(const ExactWeight&, double right)>& of) {
  const Scheme& scheme = *find_scheme("int8_row");
  const Synthetic synthetic{Generator::noise, {dtype, 24, 72}, 1, 1};
  const TestVector test_vector =
      test_vector_for(generate(scheme, Op::dequantize, kPlain, synthetic, 1).input);
  const KernelInput& input = test_vector.input;
  std::vector<std::byte> y = test_vector.expected.y;
  std::vector<ExactWeight> row(72);
  for (size_t r = 0; r < 24; ++r) {
    scheme.exact_row(input.planes, input.weight, static_cast<int64_t>(r), row);
    for (size_t c = 0; c < 72; ++c)
      store_float(dtype, y, r * 72 + c, of(row[c], load_float(dtype, y, r * 72 + c)));
  }
  const Comparison compared = compare_bitwise(dtype, test_vector.expected.y, y);
  const auto explanation = explain_answer(seen_dequantized(input, test_vector.expected.y, y),
                                          answer_hypotheses, compared.differing);
  return explanation ? describe(*explanation) : "none";
}

TEST(AnswerHypotheses, DequantizeThatTruncatesIsNamed) {
  const auto truncated = [](const ExactWeight& w, double) {
    return cut_to_16_bits({}, static_cast<float>(w.product));
  };
  EXPECT_THAT(named_dequantized(DType::bfloat16, truncated),
              testing::StartsWith("hypothesis: y rounded toward zero (predicts "));
  int turn = 0;
  EXPECT_EQ(named_dequantized(
                DType::bfloat16,
                [&](const ExactWeight& w, double right) { return ++turn % 2 ? right : truncated(w, right); }),
            "none");
}

}  // namespace
}  // namespace qcts
