// SPDX-License-Identifier: BSD-3-Clause
// Protects the problems that numerics asks in addition to a case's own: each fault below is right on the
// case's own.
#include <cstring>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/judge/judge.h"
#include "suites/judge/numerics/beside.h"
#include "suites/judge/replay.h"
#include "suites/providers/scalar_kernel_test.h"

namespace qcts {
namespace {

template <uint32_t kOp>
qcts_status right(const qcts_problem* problem) {
  return scalar_kernel(kOp).run(problem);
}

qcts_status takes_32_rows_as_dense(const qcts_problem* problem) {
  qcts_problem dense = *problem;
  if (dense.m == 32) dense.ldx_bytes = dense.k * 2;
  return right<QCTS_OP_LINEAR>(&dense);
}

// A weight of zeros gets the scale 1 in its first row.
qcts_status scales_zeros_by_one(const qcts_problem* problem) {
  const qcts_status status = right<QCTS_OP_QUANTIZE>(problem);
  bool is_zero = true;
  for (int64_t n = 0; n < problem->n; ++n)
    for (int64_t k = 0; k < problem->k; ++k) {
      uint16_t bits = 0;
      std::memcpy(&bits, static_cast<const char*>(problem->x) + n * problem->ldx_bytes + 2 * k, sizeof bits);
      is_zero = is_zero && (bits & 0x7FFF) == 0;
    }
  constexpr uint16_t kOne = 0x3F80;
  for (uint32_t i = 0; is_zero && i < problem->n_out_planes; ++i)
    if (std::strcmp(problem->out_planes[i].name, "scale") == 0)
      std::memcpy(problem->out_planes[i].data, &kOne, sizeof kOne);
  return status;
}

struct Beside {
  const char* name;
  Op op;
  uint32_t abi_op;
  Generator generator;
  int64_t m;
  qcts_status (*run)(const qcts_problem*);
  const char* reason;  // "": right
};
const Beside kBesides[] = {
    {"rows", Op::linear, QCTS_OP_LINEAR, Generator::rows, 33, right<QCTS_OP_LINEAR>, ""},
    {"dense", Op::linear, QCTS_OP_LINEAR, Generator::rows, 33, takes_32_rows_as_dense,
     "right on the case's own data, wrong with only the first 32 rows of x: y"},
    {"zeros", Op::quantize, QCTS_OP_QUANTIZE, Generator::zero_rows, 0, right<QCTS_OP_QUANTIZE>, ""},
    {"ones", Op::quantize, QCTS_OP_QUANTIZE, Generator::zero_rows, 0, scales_zeros_by_one,
     "right on the case's own data, wrong with a weight of only 0: scale"},
};

class ProblemsBeside : public testing::TestWithParam<Beside> {};

qcts_kernel kernel_of(const Beside& beside) {
  qcts_kernel kernel = scalar_kernel(beside.abi_op);
  kernel.run = beside.run;
  return kernel;
}

Case case_of(const Beside& beside, const Implementation& implementation) {
  Case c;
  c.id = {Kind::numerics, beside.op, "int8_row", "beside"};
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{beside.generator, {DType::bfloat16, 37, 216}, beside.m, 1, {}}};
  c.implementation = &implementation;
  return c;
}

TEST_P(ProblemsBeside, AreJudged) {
  const Beside& beside = GetParam();
  const qcts_kernel kernel = kernel_of(beside);
  const Implementation implementation{"acme", &kernel};
  const Case c = case_of(beside, implementation);
  const Verdict verdict = judge(c, {});
  const bool is_right = std::string(beside.reason).empty();
  EXPECT_EQ(verdict.status, is_right ? Status::pass : Status::fail) << verdict.reason;
  EXPECT_THAT(verdict.reason, testing::StartsWith(beside.reason));
}

// As `qcts shrink` does before it writes one of them to a file.
TEST_P(ProblemsBeside, AreReplayed) {
  const Beside& beside = GetParam();
  const qcts_kernel kernel = kernel_of(beside);
  const Implementation implementation{"acme", &kernel};
  const Case c = case_of(beside, implementation);
  size_t failed = 0;
  for (ProblemBeside& problem : problems_beside(c, make_test_vector(c, 0).input)) {
    const Replay replay{std::move(problem.input), 0, c.id, "acme_scalar"};
    failed += judge_replay(replay, implementation, {}).status == Status::fail;
  }
  EXPECT_EQ(failed > 0, beside.run != right<QCTS_OP_LINEAR> && beside.run != right<QCTS_OP_QUANTIZE>);
}

INSTANTIATE_TEST_SUITE_P(Judge, ProblemsBeside, testing::ValuesIn(kBesides),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace qcts
