// SPDX-License-Identifier: BSD-3-Clause
// Tests cases without rows of x: what fails, and that the kernels of this program take them.
#include "suites/judge/numerics/no_rows.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/inputs/generate.h"
#include "suites/judge/judge.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace {

qcts_status accepts_all(const qcts_problem*, char*, size_t) { return QCTS_OK; }
qcts_status wants_rows(const qcts_problem* p, char* why, size_t why_size) {
  if (p->m > 0) return QCTS_OK;
  snprintf(why, why_size, "m = 0");
  return QCTS_UNSUPPORTED;
}
qcts_status does_nothing(const qcts_problem*) { return QCTS_OK; }
qcts_status calls_it_invalid(const qcts_problem*) { return QCTS_INVALID; }
qcts_status writes_to_y(const qcts_problem* p) {
  if (p->y != nullptr) *static_cast<uint8_t*>(p->y) ^= 1;
  return QCTS_OK;
}
qcts_status writes_codes(const qcts_problem* p) {
  if (p->out_planes[0].data != nullptr) *static_cast<uint8_t*>(p->out_planes[0].data) ^= 1;
  return QCTS_OK;
}
uint64_t rows_of_work(const qcts_problem* p) { return static_cast<uint64_t>(64 * (2 - p->m)); }
uint64_t weight_for_rows(const qcts_problem* p) { return p->m == 0 ? 0 : 64; }
qcts_status prepares(const qcts_problem*, void*) { return QCTS_OK; }

struct Kernel : qcts_kernel {
  explicit Kernel(Op op) : qcts_kernel{} {
    struct_size = sizeof(qcts_kernel);
    this->op = abi_op(op);
    scheme = "int8_row:*";
    variant = "scalar";
    supports = accepts_all;
    run = does_nothing;
  }
};

Verdict judged(const qcts_kernel& kernel) {
  const Scheme& scheme = *find_scheme("int8_row");
  const Op op = op_of(kernel.op);
  const Policy policy = op == Op::linear ? kWeightOnly : scheme.policy_named("dyn_row_sym");
  const Synthetic synthetic{Generator::batches, {DType::bfloat16, 24, 40}, 0, 1, policy};
  Verdict verdict;
  judge_guarded(verdict, [&] {
    judge_without_rows(kernel, generate(scheme, op, kPlain, synthetic, 1).input, 1, verdict);
  });
  return verdict;
}

void expect_failure(const qcts_kernel& kernel, const char* reason) {
  const Verdict verdict = judged(kernel);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, testing::HasSubstr(reason));
}

TEST(NoRows, AKernelThatDoesNothingPasses) {
  for (const Op op : {Op::linear, Op::quantize_activation})
    EXPECT_EQ(judged(Kernel(op)).status, Status::pass) << op_name(op);
}

TEST(NoRows, ARefusalIsNotSupported) {
  Kernel kernel(Op::linear);
  kernel.supports = wants_rows;
  EXPECT_EQ(judged(kernel).status, Status::not_supported);
  EXPECT_EQ(judged(kernel).reason, "m = 0");
}

TEST(NoRows, AnotherStatusFails) {
  Kernel kernel(Op::linear);
  kernel.run = calls_it_invalid;
  expect_failure(kernel, "run() returned 2 without rows of x: want QCTS_OK; NULL for x, y");
}

TEST(NoRows, AWriteFails) {
  Kernel linear(Op::linear), activation(Op::quantize_activation);
  linear.run = writes_to_y;
  expect_failure(linear, "y: 1 byte written");
  activation.run = writes_codes;
  expect_failure(activation, "qdata: 1 byte written");
}

TEST(NoRows, OtherSizesThanForOneRowFail) {
  Kernel kernel(Op::linear);
  kernel.workspace_bytes = rows_of_work;
  expect_failure(kernel, "workspace_bytes() is 128 for m = 0 and 64 for m = 1");
  Kernel preparing(Op::linear);
  preparing.prepared_bytes = weight_for_rows;
  preparing.prepare = prepares;
  expect_failure(preparing, "prepared_bytes() is 0 for m = 0 and 64 for m = 1");
}

// A provider from outside may decline these cases, but not the kernels here.
TEST(NoRows, EveryBuiltinKernelThatTakesOneRowTakesNone) {
  Registry registry;
  registry.add(builtin_provider());
  registry.add(reference_provider());
  size_t passed = 0;
  for (Case& c : expand(load_plan(plan_path(kDefaultPlan)), {{}, {}, &registry, true})) {
    if (c.id.kind != Kind::numerics || c.synthetic()->generator != Generator::batches ||
        c.synthetic()->m != 0)
      continue;
    const Verdict of_none = judge(c, {});
    if (of_none.status == Status::not_supported) {
      std::get<SyntheticQuestion>(c.question).input.m = 1;
      EXPECT_EQ(judge(c, {}).status, Status::not_supported) << c.full_id() << ": " << of_none.reason;
      continue;
    }
    EXPECT_EQ(of_none.status, Status::pass) << c.full_id() << ": " << of_none.reason;
    ++passed;
  }
  EXPECT_GT(passed, 100u);
}

}  // namespace
}  // namespace qcts
