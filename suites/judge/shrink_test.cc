// SPDX-License-Identifier: BSD-3-Clause
// Shrinking keeps the diagnosis. The judge is a function of the shape, so that the smallest inputs are known.
#include <gtest/gtest.h>

#include "suites/judge/replay.h"

namespace qcts {
namespace {

constexpr const char* kHypothesis = "; hypothesis: scale of the previous row (predicts 3 of 3)";

Replay a_replay() {
  Replay replay;
  replay.case_id = parse_case_id("numerics.dequantize/int8_row/noise_n16_k32_f32").value();
  replay.provider = "acme_scalar";
  KernelInput& input = replay.input;
  input.op = Op::dequantize;
  input.scheme = find_scheme("int8_row");
  input.weight = {DType::float32, 16, 32};
  std::vector<std::byte> weight(16 * 32 * 4);
  for (size_t i = 0; i < weight.size(); i += 4) weight[i + 3] = std::byte{0x3f};  // 0.5
  input.planes = input.scheme->quantize({DType::float32, 16, 32, weight});
  return replay;
}

Verdict failed(const std::string& reason) {
  Verdict verdict;
  verdict.status = Status::fail;
  verdict.reason = reason;
  return verdict;
}

// Fails with two rows or more, for the hypothesis only with three or more.
Verdict needs_three_rows(const Replay& replay) {
  if (replay.input.weight.n >= 3) return failed(std::string("y differs") + kHypothesis);
  if (replay.input.weight.n == 2)
    return failed("y differs; hypothesis: the weight is dropped (predicts 1 of 1)");
  Verdict verdict;
  verdict.status = Status::pass;
  return verdict;
}

TEST(Shrink, KeepsTheHypothesisAndTheSmallerInputWithoutIt) {
  const Replay start = a_replay();
  uint64_t asked = 0;
  const Shrinking result = shrink_both(
      start, needs_three_rows(start),
      [&](const Replay& replay) {
        ++asked;
        return needs_three_rows(replay);
      },
      4000);
  EXPECT_EQ(result.same.replay.input.weight.n, 3);
  EXPECT_EQ(result.same.replay.input.weight.k, 1);
  EXPECT_NE(result.same.verdict.reason.find(kHypothesis), std::string::npos);
  ASSERT_TRUE(result.smaller.has_value());
  EXPECT_EQ(result.smaller->replay.input.weight.n, 2);
  EXPECT_EQ(result.smaller->verdict.reason, needs_three_rows(result.smaller->replay).reason);
  EXPECT_EQ(result.tried, asked);
}

TEST(Shrink, KeepsOneInputWhereTheHypothesisIsNeverLost) {
  const Replay start = a_replay();
  const auto judge = [](const Replay& replay) {
    if (replay.input.weight.n >= 2) return failed(kHypothesis);
    Verdict verdict;
    verdict.status = Status::pass;
    return verdict;
  };
  const Shrinking result = shrink_both(start, judge(start), judge, 4000);
  EXPECT_EQ(result.same.replay.input.weight.n, 2);
  EXPECT_FALSE(result.smaller.has_value());
}

TEST(Shrink, WithoutAHypothesisTheStatusIsEnough) {
  const Replay start = a_replay();
  const auto judge = [](const Replay& replay) {
    return failed(replay.input.weight.n < 4 ? std::string(kHypothesis) : std::string("y differs"));
  };
  const Shrinking result = shrink_both(start, judge(start), judge, 4000);
  EXPECT_EQ(result.same.replay.input.weight.n, 1);
  EXPECT_FALSE(result.smaller.has_value());
}

TEST(Shrink, StaysWithinItsBudget) {
  const Replay start = a_replay();
  for (const uint64_t budget : {0, 1, 7, 40}) {
    uint64_t asked = 0;
    const Shrinking result = shrink_both(
        start, needs_three_rows(start),
        [&](const Replay& replay) {
          ++asked;
          return needs_three_rows(replay);
        },
        budget);
    EXPECT_LE(asked, budget);
    EXPECT_EQ(result.tried, asked);
    EXPECT_EQ(result.same.verdict.reason, needs_three_rows(result.same.replay).reason);
  }
}

}  // namespace
}  // namespace qcts
