// SPDX-License-Identifier: BSD-3-Clause
// Protects what an answer to an input that no recipe writes counts for: a wrong one is only robustness where
// the provider does not promise it, but harm to the host fails everywhere.
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "suites/judge/judge.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace {

constexpr unsigned kFlushesToZero = 1u << 15;

qcts_status answers_right(const qcts_problem* problem) {
  static Registry* const registry = [] {
    auto* made = new Registry;
    made->add(reference_provider());
    return made;
  }();
  return registry->find(QCTS_OP_DEQUANTIZE, "int8_row").front()->kernel->run(problem);
}
qcts_status wrong(const qcts_problem* problem) {
  const qcts_status status = answers_right(problem);
  static_cast<char*>(problem->y)[3] ^= 0x40;  // of float32, so that a NaN becomes a number
  return status;
}
qcts_status refuses(const qcts_problem*) { return QCTS_FAILED; }
qcts_status refuses_later(const qcts_problem* problem) {
  static int calls = 0;
  return ++calls % 2 == 1 ? answers_right(problem) : QCTS_FAILED;
}
qcts_status flushes_to_zero(const qcts_problem* problem) {
  const qcts_status status = answers_right(problem);
  _mm_setcsr(_mm_getcsr() | kFlushesToZero);
  return status;
}
qcts_status throws(const qcts_problem*) { throw 1; }
qcts_status writes_past_the_end(const qcts_problem* problem) {
  const qcts_status status = answers_right(problem);
  static_cast<char*>(problem->y)[problem->n * problem->ldy_bytes] ^= 1;
  return status;
}
qcts_status writes_into_the_input(const qcts_problem* problem) {
  const qcts_status status = answers_right(problem);
  *static_cast<char*>(const_cast<void*>(problem->planes[0].data)) ^= 1;
  return status;
}
uint64_t some_bytes(const qcts_problem*) { return 64; }
qcts_status prepare_harms_and_refuses(const qcts_problem*, void* prepared) {
  static_cast<char*>(prepared)[64] ^= 1;
  return QCTS_FAILED;
}

struct Behaviour {
  const char* name;
  qcts_status (*run)(const qcts_problem*);
  Status promised, not_promised;  // the verdicts
  qcts_status (*prepare)(const qcts_problem*, void*) = nullptr;
};
const Behaviour kBehaviours[] = {
    {"right", answers_right, Status::pass, Status::pass},
    {"wrong", wrong, Status::fail, Status::robustness},
    {"refuses", refuses, Status::not_supported, Status::not_supported},
    {"refuses_later", refuses_later, Status::fail, Status::robustness},
    {"flushes_to_zero", flushes_to_zero, Status::fail, Status::fail},
    {"throws", throws, Status::fail, Status::fail},
    {"writes_past_the_end", writes_past_the_end, Status::fail, Status::fail},
    {"writes_into_the_input", writes_into_the_input, Status::fail, Status::fail},
    {"prepare_harms_and_refuses", answers_right, Status::fail, Status::fail, prepare_harms_and_refuses},
};

Verdict verdict_on(const Behaviour& behaviour, Kind kind, Generator generator, InputKind promised) {
  qcts_kernel kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_DEQUANTIZE;
  kernel.scheme = "int8_row";
  kernel.variant = "plain";
  kernel.supports = [](const qcts_problem*, char*, size_t) { return QCTS_OK; };
  kernel.run = behaviour.run;
  kernel.prepare = behaviour.prepare;
  if (behaviour.prepare != nullptr) kernel.prepared_bytes = some_bytes;
  const Implementation implementation{"acme", &kernel};
  Case c;
  c.id = {kind, Op::dequantize, "int8_row", "a"};
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{generator, {DType::float32, 37, 216}, 0, 1, {}}};
  c.implementation = &implementation;
  c.promised = promised;
  return judge(c, {});
}

class RobustnessOf : public testing::TestWithParam<Behaviour> {};

TEST_P(RobustnessOf, FollowsThePromise) {
  const Behaviour& behaviour = GetParam();
  for (const Kind kind : {Kind::numerics, Kind::determinism}) {
    SCOPED_TRACE(kind_name(kind));
    const auto judged = [&](Generator generator, InputKind promised) {
      return verdict_on(behaviour, kind, generator, promised);
    };
    const Verdict hostile = judged(Generator::extremes, InputKind::representable);
    EXPECT_EQ(hostile.input_kind, "hostile");
    EXPECT_EQ(hostile.status, behaviour.not_promised) << hostile.reason;
    EXPECT_EQ(judged(Generator::extremes, InputKind::hostile).status, behaviour.promised);
    const Verdict representable = judged(Generator::zero_points, InputKind::representable);
    EXPECT_EQ(representable.input_kind, "representable");
    EXPECT_EQ(representable.status, behaviour.promised) << representable.reason;
    const Verdict reachable = judged(Generator::noise, InputKind::representable);
    EXPECT_EQ(reachable.input_kind, "reachable");
    EXPECT_EQ(reachable.status,
              behaviour.run == answers_right && behaviour.prepare == nullptr ? Status::pass : Status::fail);
  }
}
INSTANTIATE_TEST_SUITE_P(Behaviours, RobustnessOf, testing::ValuesIn(kBehaviours),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Robustness, KeepsTheFinding) {
  const Verdict verdict =
      verdict_on(kBehaviours[1], Kind::numerics, Generator::extremes, InputKind::representable);
  ASSERT_TRUE(verdict.mismatch);
  EXPECT_THAT(verdict.reason, testing::HasSubstr("want " + verdict.mismatch->want));
}

}  // namespace
}  // namespace qcts
