// SPDX-License-Identifier: BSD-3-Clause
// Protects what a verdict says about how a kernel behaved: an element that was not written, and one whose
// wrong value equals what was there before the call, are told apart.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/judge/judge.h"
#include "suites/providers/scalar_kernel_test.h"

namespace qcts {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::byte* last_code(const qcts_problem* problem) {
  for (uint32_t i = 0; i < problem->n_out_planes; ++i)
    if (std::strcmp(problem->out_planes[i].name, "qdata") == 0)
      return static_cast<std::byte*>(problem->out_planes[i].data) + problem->n * problem->k - 1;
  return nullptr;
}

qcts_status writes_minus_one(const qcts_problem* problem) {
  const qcts_status status = scalar_kernel(QCTS_OP_QUANTIZE).run(problem);
  std::byte& code = *last_code(problem);
  code = code == std::byte{0xff} ? std::byte{0} : std::byte{0xff};  // 0xff is the poison too
  return status;
}

qcts_status leaves_the_last_code(const qcts_problem* problem) {
  const std::byte before = *last_code(problem);
  const qcts_status status = scalar_kernel(QCTS_OP_QUANTIZE).run(problem);
  *last_code(problem) = before;
  return status;
}

Verdict verdict_of(qcts_status (*run)(const qcts_problem*)) {
  qcts_kernel kernel = scalar_kernel(QCTS_OP_QUANTIZE);
  kernel.run = run;
  const Implementation implementation{"acme", &kernel};
  Case c;
  c.id = {Kind::numerics, Op::quantize, "int8_row", "a"};
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{Generator::noise, {DType::float32, 7, 13}, 0, 1, {}}};
  c.implementation = &implementation;
  JudgeContext context;
  context.diagnose = true;
  return judge(c, context);
}

TEST(Conduct, AWrongValueThatEqualsThePoisonWasWritten) {
  const Verdict verdict = verdict_of(writes_minus_one);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, Not(HasSubstr("not written")));
  EXPECT_FALSE(verdict.has(Caveat::wrote_part));
}

TEST(Conduct, AnElementThatStaysAsItWasWasNot) {
  const Verdict verdict = verdict_of(leaves_the_last_code);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("the wrong elements were not written"));
  EXPECT_TRUE(verdict.has(Caveat::wrote_part));
}

qcts_status ignores_gaps(const qcts_problem* problem) {
  qcts_problem dense = *problem;
  dense.ldx_bytes = dense.k * 4;
  return scalar_kernel(QCTS_OP_QUANTIZE).run(&dense);
}

qcts_status counts_on_alignment(const qcts_problem* problem) {
  const qcts_status status = scalar_kernel(QCTS_OP_QUANTIZE).run(problem);
  if (reinterpret_cast<uintptr_t>(problem->x) % 64 != 0) *last_code(problem) ^= std::byte{1};
  return status;
}

qcts_status counts_on_both(const qcts_problem* problem) {
  const qcts_status status = scalar_kernel(QCTS_OP_QUANTIZE).run(problem);
  if (reinterpret_cast<uintptr_t>(problem->x) % 64 != 0 && problem->ldx_bytes != problem->k * 4)
    *last_code(problem) ^= std::byte{1};
  return status;
}

TEST(Conduct, WhatTheBuffersMakeWrongIsNamed) {
  constexpr char kRight[] = "; right in aligned and dense buffers with 1 thread, wrong only with ";
  EXPECT_THAT(verdict_of(ignores_gaps).reason, HasSubstr(kRight + std::string("gaps between rows")));
  EXPECT_THAT(verdict_of(counts_on_alignment).reason,
              HasSubstr(kRight + std::string("inputs off alignment")));
  const Verdict both = verdict_of(counts_on_both);
  EXPECT_EQ(both.status, Status::fail);
  EXPECT_THAT(both.reason, Not(HasSubstr("wrong only with")));
}

}  // namespace
}  // namespace qcts
