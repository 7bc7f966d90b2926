// SPDX-License-Identifier: BSD-3-Clause
// Tests that the reference called through the C ABI gives the reference's answers, and that it judges goldens
// only.
#include "suites/providers/reference_provider.h"

#include <gtest/gtest.h>

#include <set>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/base/paths.h"
#include "suites/cases/case.h"
#include "suites/cases/expand.h"
#include "suites/providers/kernel_run.h"

namespace qcts {
namespace {

const qcts_kernel& kernel(const Registry& registry, Op op, const Scheme& scheme) {
  return *registry.find(abi_op(op), scheme.family(), "any").front()->kernel;
}

class ReferenceProvider : public testing::TestWithParam<const char*> {
 protected:
  ReferenceProvider() { registry_.add(reference_provider()); }
  const Scheme& scheme() const { return *find_scheme(GetParam()); }
  KernelInput input(Op op) const {
    KernelInput input;
    input.op = op;
    input.scheme = &scheme();
    input.weight = {DType::bfloat16, 5, 2 * std::max<int64_t>(scheme().group(), 24)};
    input.x_dtype = input.y_dtype = input.bias_dtype = DType::bfloat16;
    return input;
  }
  Registry registry_;
};

TEST_P(ReferenceProvider, QuantizesAndDequantizesAsTheScheme) {
  KernelInput asked = input(Op::quantize);
  asked.x = noise_bytes(7, static_cast<size_t>(asked.weight.n * asked.weight.k), DType::bfloat16);
  KernelRun quantize(kernel(registry_, Op::quantize, scheme()), asked, {1, 1, 3});
  ASSERT_EQ(quantize.supports().status, QCTS_OK) << quantize.supports().reason;
  const Planes planes = quantize.run(Poison::nan).planes;
  const Planes want = scheme().quantize({DType::bfloat16, asked.weight.n, asked.weight.k, asked.x});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(planes[i].bytes, want[i].bytes) << want[i].name;
  KernelInput back = input(Op::dequantize);
  back.planes = planes;
  KernelRun dequantize(kernel(registry_, Op::dequantize, scheme()), back, {1, 1, 3});
  EXPECT_EQ(dequantize.run(Poison::nan).y, scheme().dequantize(want, asked.weight));
}

TEST_P(ReferenceProvider, SumsExactlyUnderEveryPolicyThatNeedsNoScales) {
  for (const ActivationInfo& policy : scheme().activations()) {
    KernelInput asked = input(Op::linear);
    if (!scheme().policy_specs(asked.weight, policy).empty()) continue;
    asked.activation = policy;
    asked.m = 2;
    const std::vector<std::byte> w =
        noise_bytes(8, static_cast<size_t>(asked.weight.n * asked.weight.k), DType::bfloat16);
    asked.planes = scheme().quantize({DType::bfloat16, asked.weight.n, asked.weight.k, w});
    asked.x = noise_bytes(9, static_cast<size_t>(asked.m * asked.weight.k), DType::bfloat16);
    KernelRun run(kernel(registry_, Op::linear, scheme()), asked, {1, 0, 0});
    ASSERT_EQ(run.supports().status, QCTS_OK) << run.supports().reason;
    const std::vector<std::byte> y = run.run(Poison::nan).y;
    double want = 0;
    std::vector<ExactWeight> row(static_cast<size_t>(asked.weight.k));
    std::vector<double> x(row.size());
    scheme().exact_row(asked.planes, asked.weight, 3, row);
    for (size_t k = 0; k < x.size(); ++k)
      x[k] = load_float(DType::bfloat16, asked.x, static_cast<size_t>(asked.weight.k) + k);
    if (policy.name != kWeightOnly)
      scheme().exact_activation(scheme().quantize_activation(asked.x_matrix(), policy, asked.planes),
                                asked.x_matrix(), policy, 1, x);
    for (size_t k = 0; k < x.size(); ++k) want += x[k] * (row[k].product + row[k].zero);
    EXPECT_NEAR(load_float(DType::bfloat16, y, static_cast<size_t>(asked.weight.n) + 3), want,
                std::fabs(want) * 0x1p-8)
        << policy.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, ReferenceProvider,
                         testing::Values("int8_row", "int8_tensor_reduced", "int8_g32", "intx_b3_g32_asym",
                                         "int4_plain_g32"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ReferenceProviderCases, AreAboutGoldensAlone) {
  Registry registry;
  registry.add(reference_provider());
  const Fixtures fixtures = load_fixtures(fixtures_folder());
  std::set<Op> ops;
  for (const Case& c : expand(load_plan(plan_path("default")), {fixtures.goldens, {}, &registry})) {
    if (c.implementation == nullptr) continue;
    EXPECT_NE(c.golden(), nullptr) << c.full_id();
    ops.insert(c.id.op);
  }
  EXPECT_EQ(ops, (std::set<Op>{Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack,
                               Op::linear}));
}

}  // namespace
}  // namespace qcts
