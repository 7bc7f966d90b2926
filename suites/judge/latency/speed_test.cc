// SPDX-License-Identifier: BSD-3-Clause
// Tests the verdicts on speed with a stopwatch that returns chosen times: no clock decides these tests.
#include <cmath>
#include <fstream>
#include <map>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/machine/machine.h"
#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "reports/report.h"
#include "suites/base/paths.h"
#include "suites/judge/judge.h"
#include "suites/judge/latency/block.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/providers/scalar_kernel_test.h"
#include "suites/timing/targets.h"

namespace qcts {
namespace {

using testing::HasSubstr;

// The values that the stopwatch pretends: the microseconds by the name of a series (10 for all others), the
// noise of each sample, and the change of the canary.
struct Pretended {
  std::map<std::string, double> us;
  double spread = 0.01, canary_drift = 1;
  int canary_calls = 0;
} pretended;

void pretend_rounds(std::vector<Series>& series, double, uint64_t seed) {
  constexpr size_t kRounds = 80;
  for (size_t s = 0; s < series.size(); ++s) {
    const auto known = pretended.us.find(series[s].name);
    const double us = known == pretended.us.end() ? 10 : known->second;
    for (size_t round = 0; round < kRounds; ++round)
      series[s].us.push_back(us * std::exp(pretended.spread * noise(seed + 100 * s, round)));
  }
}

double pretend_canary(Canary&) { return pretended.canary_calls++ % 2 == 0 ? 1 : pretended.canary_drift; }

const std::byte* row_of(const void* data, int64_t row, int64_t stride) {
  return static_cast<const std::byte*>(data) + row * stride;
}

qcts_status run_dense(const qcts_problem* p) {
  const size_t k = static_cast<size_t>(p->k), bytes = 2 * k;
  const qcts_plane& w = p->planes[0];
  for (int64_t m = 0; m < p->m; ++m)
    for (int64_t n = 0; n < p->n; ++n) {
      const std::span<const std::byte> x(row_of(p->x, m, p->ldx_bytes), bytes),
          weight(row_of(w.data, n, w.stride_bytes[0]), bytes);
      double sum = 0;
      for (size_t i = 0; i < k; ++i)
        sum += load_float(DType::bfloat16, x, i) * load_float(DType::bfloat16, weight, i);
      std::byte* y = static_cast<std::byte*>(p->y) + m * p->ldy_bytes;
      store_float(DType::bfloat16, {y, 2 * static_cast<size_t>(p->n)}, static_cast<size_t>(n),
                  round_to(DType::bfloat16, sum));
    }
  return QCTS_OK;
}

const qcts_kernel& dense_kernel() {
  static const qcts_kernel kernel = [] {
    qcts_kernel made{};
    made.struct_size = sizeof made;
    made.op = QCTS_OP_LINEAR;
    made.scheme = "dense";
    made.variant = "loops";
    made.numerics.struct_size = sizeof made.numerics;
    made.supports = [](const qcts_problem*, char*, size_t) { return QCTS_OK; };
    made.run = run_dense;
    return made;
  }();
  return kernel;
}

class Speed : public testing::Test {
 protected:
  Speed() {
    pretended = {};
    static const qcts_kernel* kernels[] = {&dense_kernel()};
    qcts_provider provider{};
    provider.struct_size = sizeof provider;
    provider.abi_version = QCTS_ABI_VERSION;
    provider.name = "float";
    provider.n_kernels = 1;
    provider.kernels = kernels;
    registry_.add(provider);
    context_.dense_peer = &registry_;
    context_.scratch = context_.targets = scratch_.path();
    context_.program = "qcts";
    context_.spent = [] { return 0.0; };
    context_.stopwatch = {pretend_rounds, pretend_canary};
  }

  void write_target(double at_least) {
    const std::string name = machine_class(machine());
    std::ofstream(scratch_.path() / (name + ".json"))
        << R"({"schema": 1, "machine_class": ")" << name
        << R"(", "targets": [{"provider": "acme", "op": "linear", "scheme": "int8_row", "variant": "scalar", "measure": "share_of_probe", "at_least": )"
        << at_least << R"(, "reason": "a test"}]})";
  }

  Verdict judged(int64_t m, int64_t block_shrink = 0) {
    Case c;
    c.id = {Kind::latency, Op::linear, "int8_row", "timed"};
    c.scheme = find_scheme("int8_row");
    const int64_t side = block_shrink == 0 ? 64 : 4096 / block_shrink;
    const Synthetic input{Generator::noise, {DType::bfloat16, side, side}, m, 1};
    if (block_shrink == 0)
      c.question = TimedQuestion{input};
    else
      c.question = BlockQuestion{input, block_shrink};
    c.implementation = &candidate_;
    return judge(c, context_);
  }

  const Implementation candidate_{"acme", &scalar_kernel(QCTS_OP_LINEAR)};
  Registry registry_;
  ScratchFolder scratch_;
  JudgeContext context_;
};

TEST_F(Speed, FasterThanDenseIsSaidWithItsInterval) {
  pretended.us = {{"dense", 21}};
  const Verdict verdict = judged(1);
  EXPECT_EQ(verdict.status, Status::pass);
  ASSERT_EQ(verdict.speed.size(), 1u);
  const SpeedClaim& claim = verdict.speed[0];
  EXPECT_EQ(claim.status, Status::pass);
  EXPECT_EQ(claim.against, "dense bfloat16 (float_loops)");
  EXPECT_NEAR(claim.ratio, 2.1, 0.05);
  EXPECT_TRUE(claim.required && claim.low && claim.high);
  EXPECT_THAT(verdict.reason, HasSubstr("int8_row m=1 n=64 k=64: 2."));
  EXPECT_THAT(verdict.reason, HasSubstr("] faster than dense bfloat16 (float_loops)"));
}

TEST_F(Speed, SlowerThanDenseFailsWhereLatencyGates) {
  pretended.us = {{"dense", 5}};
  EXPECT_EQ(judged(1).status, Status::pass) << "it does not gate";
  EXPECT_THAT(judged(1).reason, HasSubstr("slower than dense bfloat16 (float_loops), 0.5"));
  context_.gate_latency = true;
  EXPECT_EQ(judged(1).status, Status::fail) << "on a machine without targets as well";
  write_target(1e-9);
  const Verdict verdict = judged(1);
  EXPECT_EQ(verdict.status, Status::fail) << "although it meets its target";
  EXPECT_TRUE(blocks_conformance(verdict, true));
}

// A kernel that takes less time than the machine needs to read its bytes did not do its work in that time, or
// the machine was slower while the roof was timed.
TEST_F(Speed, AKernelAboveItsRoofIsInDoubt) {
  context_.gate_latency = true;
  write_target(1e-9);
  pretended.us = {{"dense", 20}, {"probe", 10.4}};
  EXPECT_EQ(judged(1).status, Status::pass) << "within the margin";
  pretended.us["probe"] = 11;
  const Verdict verdict = judged(1);
  EXPECT_EQ(verdict.status, Status::inconclusive);
  EXPECT_THAT(verdict.reason, HasSubstr("not to be trusted: faster than the machine's own roof"));
  ASSERT_EQ(verdict.speed.size(), 1u);
  EXPECT_EQ(verdict.speed[0].status, Status::inconclusive);
}

TEST_F(Speed, EqualIsNoSpeedUp) {
  context_.gate_latency = true;
  write_target(1e-9);
  const Verdict verdict = judged(1);
  EXPECT_EQ(verdict.status, Status::inconclusive);
  EXPECT_THAT(verdict.reason, HasSubstr("not shown to be faster than dense"));
  pretended.us = {{"dense", 20}};
  EXPECT_EQ(judged(1).status, Status::pass);
}

TEST_F(Speed, NoiseIsInconclusive) {
  context_.gate_latency = true;
  write_target(1e-9);
  pretended.us = {{"dense", 11}};
  pretended.spread = 1;
  EXPECT_EQ(judged(1).status, Status::inconclusive);
}

TEST_F(Speed, WhatIsNotToBeTrustedIsInconclusive) {
  context_.gate_latency = true;
  write_target(1e-9);
  for (const double dense_us : {5.0, 20.0}) {
    for (const bool throttled : {false, true}) {
      pretended = {.us = {{"dense", dense_us}}};
      if (throttled)
        pretended.canary_drift = 1.2;
      else
        pretended.us["again"] = 12;
      const Verdict verdict = judged(1);
      EXPECT_EQ(verdict.status, Status::inconclusive) << dense_us << throttled;
      EXPECT_EQ(verdict.speed[0].status, Status::inconclusive);
      EXPECT_THAT(verdict.reason, HasSubstr("not to be trusted"));
      EXPECT_THAT(verdict.reason, HasSubstr("in doubt"));
    }
  }
}

TEST_F(Speed, PrefillIsComparedAndMayBeSlower) {
  context_.gate_latency = true;
  write_target(1e-9);
  pretended.us = {{"dense", 5}};
  const Verdict verdict = judged(kPrefillRows);
  EXPECT_EQ(verdict.status, Status::pass);
  EXPECT_EQ(verdict.speed[0].status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("slower than dense"));
  EXPECT_THAT(verdict.reason, HasSubstr("(not required)"));
  EXPECT_EQ(judged(kPrefillRows - 1).status, Status::fail);
}

TEST_F(Speed, APeerIsReportedAndNeverGates) {
  context_.gate_latency = context_.is_peer = true;
  pretended.us = {{"dense", 5}};
  Verdict verdict = judged(1);
  EXPECT_EQ(verdict.status, Status::pass);
  EXPECT_THAT(verdict.reason, HasSubstr("slower than dense"));
  verdict = verdict_from_json(to_json(verdict));
  EXPECT_TRUE(verdict.is_peer);
  verdict.status = Status::inconclusive;
  EXPECT_FALSE(blocks_conformance(verdict, true));
  verdict.is_peer = false;
  EXPECT_TRUE(blocks_conformance(verdict, true));
}

class Block : public Speed {
 protected:
  Block() { context_.gate_latency = true; }
  Verdict block(int64_t m = 1) { return judged(m, 32); }
};

TEST_F(Block, FasterThanDenseBeforeAndAfterLoading) {
  pretended.us = {{"dense", 30}};
  const Verdict verdict = block();
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
  ASSERT_EQ(verdict.speed.size(), 3u);
  EXPECT_THAT(verdict.reason, HasSubstr("int8_row m=1 block of Llama-3.1-8B/32: 3."));
  EXPECT_THAT(verdict.reason, HasSubstr("after loading: as fast as before saving, 1.0"));
  EXPECT_EQ(verdict.speed[2].claim, kAsFast);
  for (const char* name : {"median_us", "after_loading_us", "dense_us", "speedup_before", "speedup_after",
                           "before_over_after", "ratio_to_itself", "alarm", "canary_drift", "file_bytes"})
    EXPECT_NE(find_measure(verdict, name), nullptr) << name;
  EXPECT_FALSE(verdict.samples_us.empty());
}

TEST_F(Block, SlowerAfterLoadingFails) {
  pretended.us = {{"dense", 30}, {"after", 20}};
  const Verdict verdict = block();
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("after loading: slower than before saving, 0.5"));
  EXPECT_EQ(verdict.speed[1].status, Status::pass) << "it is still faster than dense";
  EXPECT_EQ(block(kPrefillRows).status, Status::fail) << "that is required of prefill too";
}

TEST_F(Block, SlowerThanDenseFailsAndDoubtDecidesNothing) {
  pretended.us = {{"dense", 5}};
  EXPECT_EQ(block().status, Status::fail);
  EXPECT_EQ(block(kPrefillRows).status, Status::pass);
  pretended.us["again"] = 11;
  EXPECT_EQ(block().status, Status::inconclusive);
  pretended.us = {{"dense", 30}};
  pretended.spread = 1;
  EXPECT_EQ(block().status, Status::inconclusive);
}

TEST_F(Block, AWrongKernelIsNotTimed) {
  qcts_kernel wrong = scalar_kernel(QCTS_OP_LINEAR);
  wrong.run = [](const qcts_problem* problem) {
    const qcts_status status = scalar_kernel(QCTS_OP_LINEAR).run(problem);
    static_cast<std::byte*>(problem->y)[1] ^= std::byte{0x40};
    return status;
  };
  const Implementation implementation{"acme", &wrong};
  Case c;
  c.id = {Kind::latency, Op::linear, "int8_row", "timed"};
  c.scheme = find_scheme("int8_row");
  c.question = BlockQuestion{{Generator::noise, {DType::bfloat16, 128, 128}, 1, 1}, 32};
  c.implementation = &implementation;
  const Verdict verdict = judge(c, context_);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("not timed: wrong answer: block.self_attn.q_proj.weight"));
  EXPECT_EQ(find_measure(verdict, "median_us"), nullptr);
}

TEST_F(Block, WithoutADenseLayerNothingIsDecided) {
  context_.dense_peer = nullptr;
  EXPECT_EQ(block().status, Status::inconclusive);
  EXPECT_THAT(block().reason, HasSubstr("dense"));
}

}  // namespace
}  // namespace qcts
