// SPDX-License-Identifier: BSD-3-Clause
// Tests that weights which explain an answer name its cause, and weights in addition to another mistake do
// not.
#include "suites/judge/diagnosis/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/inputs/generate.h"
#include "suites/providers/scalar_kernel_test.h"

namespace qcts {
namespace {

// Uses the scale of the previous row, and gives row 0 its own.
qcts_status run_with_moved_scales(qcts_problem problem) {
  std::vector<qcts_plane> planes(problem.planes, problem.planes + problem.n_planes);
  std::vector<float> moved;
  for (qcts_plane& plane : planes)
    if (std::string_view(plane.name) == "scale") {
      const auto* scales = static_cast<const float*>(plane.data);
      moved.assign(scales, scales + problem.n);
      std::ranges::copy(scales, scales + problem.n - 1, moved.begin() + 1);
      plane.data = moved.data();
    }
  problem.planes = planes.data();
  return scalar_kernel(QCTS_OP_LINEAR).run(&problem);
}

std::string explanation_of(qcts_status (*run)(const qcts_problem*)) {
  qcts_kernel kernel = scalar_kernel(QCTS_OP_LINEAR);
  kernel.run = run;
  Generated made = generate(*find_scheme("int8_row"), Op::linear, kPlain,
                            {Generator::noise, {DType::bfloat16, 37, 216}, 5, 1}, 1);
  const TestVector test_vector = test_vector_for(std::move(made.input));
  const LinearReference reference(test_vector.input);
  const LinearStages stages = declared_stages(kernel, test_vector.input.x_dtype);
  const Expectation expectation(test_vector, &reference, stages);
  KernelRun call(kernel, test_vector.input, {1, 0, 0});
  const KernelAnswer answer = call.run(Poison::nan);
  const Finding finding = expectation.judge(answer);
  std::vector<VerdictFinding> findings;
  return explained({kernel, test_vector, expectation, stages, answer, finding.mismatch->count}, findings);
}

TEST(Explain, WeightsThatGiveTheAnswerNameItsCause) {
  EXPECT_THAT(explanation_of([](const qcts_problem* problem) { return run_with_moved_scales(*problem); }),
              testing::HasSubstr("hypothesis: scale of the previous row"));
}

TEST(Explain, WeightsBesideAnotherMistakeDoNot) {
  const std::string text = explanation_of([](const qcts_problem* problem) {
    qcts_problem without_bias = *problem;
    without_bias.bias = nullptr;
    return run_with_moved_scales(without_bias);
  });
  EXPECT_THAT(text, testing::HasSubstr("they agree with: scale of the previous row"));
  EXPECT_THAT(text, testing::HasSubstr("something else is wrong too"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("hypothesis: ")));
}

}  // namespace
}  // namespace qcts
