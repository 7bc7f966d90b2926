// SPDX-License-Identifier: BSD-3-Clause
// Tests the copies a kernel is timed on: too many for any cache, of both what it reads and what it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "suites/judge/latency/latency_case.h"
#include "suites/providers/scalar_kernel_test.h"
#include "suites/timing/timed_kernel.h"

namespace qcts {
namespace {

Case case_of(Op op) {
  Case c;
  c.id = {Kind::latency, op, "int8_row", "n64_k64"};
  c.scheme = find_scheme("int8_row");
  c.question = TimedQuestion{{Generator::noise, {DType::bfloat16, 64, 64}, 1, 1}};
  return c;
}

std::set<const void*> written_to;

// Counts the distinct addresses that three calls write to, each call on its own copy.
template <uint32_t kOp>
size_t places_of_three_copies(const KernelInput& input) {
  qcts_kernel watched = scalar_kernel(kOp);
  written_to.clear();
  watched.run = [](const qcts_problem* problem) {
    if (problem->y != nullptr) written_to.insert(problem->y);
    for (uint32_t i = 0; i < problem->n_out_planes; ++i) written_to.insert(problem->out_planes[i].data);
    return scalar_kernel(kOp).run(problem);
  };
  TimedKernel timed(watched, input, 1);
  timed.make_ready(3);
  for (size_t copy = 0; copy < 3; ++copy) timed.call(copy);
  EXPECT_EQ(timed.copied_bytes(), timed.weight_bytes() + (kOp == QCTS_OP_LINEAR ? 0 : timed.written_bytes()));
  return written_to.size();
}

// An output written to the same place as the last one is already in a cache, unless the kernel streams past
// it. But a layer's x and y are in the cache in real use: the previous layer has just written x, and the next
// one reads y.
TEST(TimedKernel, EachCopyOfAWeightIsWrittenElsewhereAndYToOnePlace) {
  const KernelInput codes = latency_input(case_of(Op::quantize), 1);
  EXPECT_EQ(places_of_three_copies<QCTS_OP_QUANTIZE>(codes), 3 * output_specs(codes).size());
  EXPECT_EQ(places_of_three_copies<QCTS_OP_DEQUANTIZE>(latency_input(case_of(Op::dequantize), 1)), 3u);
  EXPECT_EQ(places_of_three_copies<QCTS_OP_LINEAR>(latency_input(case_of(Op::linear), 1)), 1u);
}

TEST(TimedKernel, TheAnswerIsTheLastCalls) {
  qcts_kernel numbering = scalar_kernel(QCTS_OP_DEQUANTIZE);
  static std::byte number;
  number = std::byte{0};
  numbering.run = [](const qcts_problem* problem) {
    number = std::byte{static_cast<unsigned char>(static_cast<int>(number) + 1)};
    std::fill_n(static_cast<std::byte*>(problem->y), static_cast<size_t>(problem->n * problem->ldy_bytes),
                number);
    return QCTS_OK;
  };
  const KernelInput input = latency_input(case_of(Op::dequantize), 1);
  TimedKernel timed(numbering, input, 1);
  timed.make_ready(3);
  for (const size_t copy : {0, 1, 2, 1}) {
    timed.call(copy);
    const KernelAnswer answer = timed.answer();
    ASSERT_EQ(answer.y.size(), 64u * 64 * 2);
    EXPECT_EQ(answer.y.front(), number);
    EXPECT_EQ(answer.y.back(), number);
  }
}

// A kernel that ends a batch before its work would look fast.
TEST(TimedKernel, AnOutputThatChangesAfterABatchIsNoticed) {
  static std::byte* last_y;
  qcts_kernel watched = scalar_kernel(QCTS_OP_DEQUANTIZE);
  watched.run = [](const qcts_problem* problem) {
    last_y = static_cast<std::byte*>(problem->y);
    return scalar_kernel(QCTS_OP_DEQUANTIZE).run(problem);
  };
  const KernelInput input = latency_input(case_of(Op::dequantize), 1);
  TimedKernel timed(watched, input, 1);
  timed.make_ready(1);
  timed.time_us(0, 1, true);
  EXPECT_NO_THROW(timed.time_us(0, 1, true));
  for (size_t i = 0; i < timed.written_bytes(); ++i) last_y[i] ^= std::byte{1};
  EXPECT_THROW(timed.time_us(0, 1, true), ProviderFault);
}

// Each copy is another problem, and the judge knows which.
TEST(TimedKernel, EveryCallOfABatchIsVerifiedAgainstItsOwnData) {
  for (const Op op : {Op::quantize, Op::dequantize, Op::linear}) {
    SCOPED_TRACE(static_cast<int>(op));
    const Case c = case_of(op);
    VerifiedKernel kernel(scalar_kernel(abi_op(op)), latency_input(c, 1), 1);
    ASSERT_EQ(kernel.make_and_verify(5), "");
    kernel.check_batches();
    std::set<std::vector<std::byte>> codes;
    for (int batch = 0; batch < 4; ++batch) {
      kernel.timed().time_us(0, 5, true);
      for (int i = 0; i < 5; ++i) EXPECT_EQ(kernel.verify(), "");
      for (const TimedCall& call : kernel.timed().last_calls()) {
        KernelInput read = latency_input(c, 1);
        kernel.timed().read_input(call, read);
        codes.insert(op == Op::quantize ? read.x : read.planes[0].bytes);
      }
    }
    EXPECT_GE(codes.size(), op == Op::linear ? 5u : 20u);
    if (op == Op::linear) {
      EXPECT_GE(kernel.finish_batches(), 512u);
    }
  }
}

TEST(TimedKernel, ColdCopiesLeaveTheCachesWithinTheBudget) {
  EXPECT_GE(cold_copies(1 << 20, 1 << 20, 32 << 20, 1 << 30), 64u);
  EXPECT_EQ(cold_copies(1 << 20, 1 << 20, 32 << 20, 8 << 20), 7u);
  EXPECT_EQ(cold_copies(1 << 20, 5 << 20, 32 << 20, 40 << 20), 7u) << "a prepared weight takes memory too";
  for (uint64_t bytes = 1; bytes < uint64_t{1} << 28; bytes = bytes * 3 + 1)
    EXPECT_EQ(cold_copies(bytes, bytes, 32 << 20, 1 << 30) % 2, 1u)
        << bytes << ": with a stride of two, half of them are never timed";
  EXPECT_EQ(cold_copies(uint64_t{2} << 30, uint64_t{2} << 30, 32 << 20, 1 << 30), 1u);
  EXPECT_GE(cold_copies(1 << 20, 1 << 20, 0, 1 << 30), 128u)
      << "an unknown cache size is assumed to be large";
}

}  // namespace
}  // namespace qcts
