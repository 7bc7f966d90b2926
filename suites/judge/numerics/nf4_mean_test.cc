// SPDX-License-Identifier: BSD-3-Clause
// Judges the mean of nf4 scalers where the float32 nearest to their sum depends on the order of additions, as
// the executor runs it (kernels/sm80/tensors.h). No generated weight is so.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/inputs/generate.h"
#include "suites/judge/judge.h"
#include "suites/judge/replay.h"

namespace qcts {
namespace {

TEST(Nf4Mean, IsThatOfTheSumInOrder) {
  constexpr int64_t kBlock = 64, kBlocks = 512;
  Synthetic synthetic;
  synthetic.weight = {DType::float32, kBlock * kBlocks / 1024, 1024};
  KernelInput input = generate(*find_scheme("nf4_b64_s256"), Op::quantize, kPlain, synthetic, 1).input;
  // In order, a double has no bit for either 2^-29 next to 2^24 + 1, which lies between two float32. The sum
  // of both, which one thread adds, would round it up.
  std::vector<float> weight(kBlock * kBlocks, std::ldexp(1.0f, -60));
  weight[0] = std::ldexp(1.0f, 24);
  weight[kBlock] = 1;
  weight[2 * kBlock] = weight[(2 + kBlocks / 2) * kBlock] = std::ldexp(1.0f, -29);
  ASSERT_EQ(input.x.size(), weight.size() * sizeof(float));
  std::memcpy(input.x.data(), weight.data(), input.x.size());
  const TestVector vector = test_vector_for(input);

  Registry registry;
  registry.load(build_path("lib/plugins/libqcts_cudaemu.so"));
  int judged = 0;
  for (const Implementation& implementation : registry.implementations()) {
    if (implementation.kernel->op != QCTS_OP_QUANTIZE || implementation.family() != "nf4") continue;
    Verdict verdict;
    judge_guarded(verdict, [&] { judge_test_vector(*implementation.kernel, vector, {}, verdict); });
    EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
    ++judged;
  }
  EXPECT_EQ(judged, 1);
}

}  // namespace
}  // namespace qcts
