// SPDX-License-Identifier: BSD-3-Clause
// Tests latency verdicts: a wrong answer is never timed, targets have three outcomes, and a machine without
// targets cannot pass the gate.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "kernels/machine/machine.h"
#include "suites/base/paths.h"
#include "suites/base/process.h"
#include "suites/judge/judge.h"
#include "suites/judge/latency/latency_case.h"
#include "suites/providers/scalar_kernel_test.h"
#include "suites/timing/busy_threads.h"
#include "suites/timing/interleaved_timer.h"
#include "suites/timing/stats.h"
#include "suites/timing/targets.h"
#include "suites/timing/timed_kernel.h"

namespace qcts {
namespace {

class LatencyVerdict : public testing::Test {
 protected:
  LatencyVerdict() {
    context_.targets = scratch_.path();
    context_.latency_budget_s = 0.2;
    context_.program = "qcts";
  }

  static Case case_of_linear() {
    Case c;
    c.id = {Kind::latency, Op::linear, "int8_row", "m1_n64_k64"};
    c.scheme = find_scheme("int8_row");
    c.question = TimedQuestion{{Generator::noise, {DType::bfloat16, 64, 64}, 1, 1}};
    return c;
  }

  Verdict judge_kernel(const qcts_kernel& kernel) {
    const Implementation implementation{"test", &kernel};
    Case c = case_of_linear();
    c.implementation = &implementation;
    return judge(c, context_);
  }

  void write_target(double share) {
    const std::string name = machine_class(machine());
    std::ofstream(scratch_.path() / (name + ".json"))
        << R"({"schema": 1, "machine_class": ")" << name
        << R"(", "targets": [{"provider": "test", "op": "linear", "scheme": "int8_row", "variant": "scalar", "measure": "share_of_probe", "at_least": )"
        << share << R"(, "reason": "a test"}]})";
  }

  static const Measure* measure(const Verdict& verdict, std::string_view name) {
    const auto found = std::find_if(verdict.measures.begin(), verdict.measures.end(),
                                    [&](const Measure& m) { return m.name == name; });
    return found == verdict.measures.end() ? nullptr : &*found;
  }

  ScratchFolder scratch_;
  JudgeContext context_;
};

// A prepared weight that holds its own address, or nothing.
int prepare_calls = 0;
uint64_t mark_bytes(const qcts_problem*) { return sizeof(void*); }
template <bool kSaysWhere>
qcts_status prepare_mark(const qcts_problem*, void* prepared) {
  ++prepare_calls;
  const void* mark = kSaysWhere ? prepared : nullptr;
  std::memcpy(prepared, &mark, sizeof mark);
  return QCTS_OK;
}
template <bool kSaysWhere>
qcts_status run_marked(const qcts_problem* p) {
  const void* mark;
  std::memcpy(&mark, p->prepared, sizeof mark);
  return mark == (kSaysWhere ? p->prepared : nullptr) ? scalar_kernel(QCTS_OP_LINEAR).run(p) : QCTS_FAILED;
}
template <bool kSaysWhere>
qcts_kernel marked() {
  qcts_kernel kernel = scalar_kernel(QCTS_OP_LINEAR);
  kernel.prepared_bytes = mark_bytes;
  kernel.prepare = prepare_mark<kSaysWhere>;
  kernel.run = run_marked<kSaysWhere>;
  prepare_calls = 0;
  return kernel;
}

TEST_F(LatencyVerdict, PreparesEachCopyOfWhatHoldsItsAddress) {
  EXPECT_EQ(judge_kernel(marked<true>()).status, Status::pass);
  EXPECT_GT(prepare_calls, 100);
  EXPECT_EQ(judge_kernel(marked<false>()).status, Status::pass);
  EXPECT_LE(prepare_calls, 70) << "prepared again instead of being copied";
  EXPECT_GT(prepare_calls, 60) << "all copies are one weight";
}

TEST_F(LatencyVerdict, MeasuresAndSaysThatNothingIsKnownOfTheMachine) {
  const Verdict verdict = judge_kernel(scalar_kernel(QCTS_OP_LINEAR));
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
  EXPECT_NE(verdict.reason.find("no target for this machine class " + machine_class(machine())),
            std::string::npos)
      << verdict.reason;
  EXPECT_NE(verdict.reason.find("no dense baseline here"), std::string::npos) << verdict.reason;
  for (const char* name :
       {"median_us", "fastest_us", "fastest_of_roof", "busy_threads", "share_of_probe", "share_of_roof",
        "stream", "ratio_to_itself", "alarm", "canary_drift", "bandwidth", "operations", "working_set_bytes"})
    EXPECT_NE(measure(verdict, name), nullptr) << name;
  EXPECT_EQ(measure(verdict, "share_of_peak"), nullptr) << "there is no peak for scalar code";
  EXPECT_GT(verdict.samples_us.size(), 5u);
}

TEST_F(LatencyVerdict, AWrongKernelIsNotTimed) {
  qcts_kernel wrong = scalar_kernel(QCTS_OP_LINEAR);
  wrong.run = [](const qcts_problem* problem) {
    const qcts_status status = scalar_kernel(QCTS_OP_LINEAR).run(problem);
    static_cast<std::byte*>(problem->y)[1] ^= std::byte{0x40};
    return status;
  };
  const Verdict verdict = judge_kernel(wrong);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("not timed: wrong answer"), std::string::npos) << verdict.reason;
  EXPECT_EQ(measure(verdict, "median_us"), nullptr);
  EXPECT_TRUE(verdict.samples_us.empty());
}

// Works while it is being verified and does nothing once it is timed.
TEST_F(LatencyVerdict, WorkThatIsSkippedLaterIsSeen) {
  qcts_kernel lazy = scalar_kernel(QCTS_OP_LINEAR);
  lazy.run = [](const qcts_problem* problem) {
    static int calls = 0;
    if (calls++ == 0) return scalar_kernel(QCTS_OP_LINEAR).run(problem);
    std::fill_n(static_cast<std::byte*>(problem->y), static_cast<size_t>(problem->ldy_bytes),
                std::byte{0x7f});
    return QCTS_OK;
  };
  const Verdict verdict = judge_kernel(lazy);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("wrong while timed"), std::string::npos) << verdict.reason;
}

// Looks up the answers of earlier calls by the address of x, so that only the lookup is timed.
TEST_F(LatencyVerdict, AnAnswerThatIsKeptForThePlaceOfXIsSeen) {
  qcts_kernel keeper = scalar_kernel(QCTS_OP_LINEAR);
  static std::set<const void*> known;
  known.clear();
  keeper.run = [](const qcts_problem* problem) {
    return known.insert(problem->x).second ? scalar_kernel(QCTS_OP_LINEAR).run(problem) : QCTS_OK;
  };
  const Verdict verdict = judge_kernel(keeper);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("wrong while timed"), std::string::npos) << verdict.reason;
}

// Leaves out one row in a hundred, of most of the calls.
TEST_F(LatencyVerdict, AHundredthOfTheWorkThatIsSkippedIsSeen) {
  qcts_kernel lazy = scalar_kernel(QCTS_OP_LINEAR);
  lazy.run = [](const qcts_problem* problem) {
    static int calls = 0;
    const qcts_status status = scalar_kernel(QCTS_OP_LINEAR).run(problem);
    if (calls++ % 4 != 0) std::fill_n(static_cast<std::byte*>(problem->y), 2, std::byte{0});
    return status;
  };
  Case c = case_of_linear();
  std::get<TimedQuestion>(c.question).input.weight.n = 100;
  const Implementation implementation{"test", &lazy};
  c.implementation = &implementation;
  const Verdict verdict = judge(c, context_);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("wrong"), std::string::npos) << verdict.reason;
}

// A kernel that remembers answers by the content of x finds none.
TEST_F(LatencyVerdict, NoCallOfABatchFindsTheXOfAnother) {
  static std::map<std::vector<std::byte>, int> seen;
  seen.clear();
  qcts_kernel watched = scalar_kernel(QCTS_OP_LINEAR);
  watched.run = [](const qcts_problem* problem) {
    const auto* x = static_cast<const std::byte*>(problem->x);
    ++seen[std::vector<std::byte>(x, x + problem->m * problem->ldx_bytes)];
    return scalar_kernel(QCTS_OP_LINEAR).run(problem);
  };
  const KernelInput input = latency_input(case_of_linear(), 1);
  TimedKernel timed(watched, input, 1);
  timed.make_ready(3);
  for (int i = 0; i < 5; ++i) timed.time_us(0, 20, true);
  EXPECT_GE(seen.size(), 98u) << "100 parts of 2^18 elements";
}

// Copies a weight at its first use and keeps the copy under the weight's address.
TEST_F(LatencyVerdict, AWeightThatIsKeptForItsPlaceIsSeen) {
  qcts_kernel keeper = scalar_kernel(QCTS_OP_LINEAR);
  static std::map<const void*, std::vector<std::byte>> known;
  known.clear();
  keeper.run = [](const qcts_problem* problem) {
    std::vector<qcts_plane> planes(problem->planes, problem->planes + problem->n_planes);
    for (qcts_plane& plane : planes) {
      if (std::string_view(plane.name) != "qdata") continue;
      const auto* codes = static_cast<const std::byte*>(plane.data);
      const int64_t bytes = plane.shape[0] * plane.shape[1];
      plane.data =
          known.try_emplace(codes, std::vector<std::byte>(codes, codes + bytes)).first->second.data();
    }
    qcts_problem kept = *problem;
    kept.planes = planes.data();
    return scalar_kernel(QCTS_OP_LINEAR).run(&kept);
  };
  const Verdict verdict = judge_kernel(keeper);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("wrong on other data at the same addresses"), std::string::npos)
      << verdict.reason;
}

// A kernel that caches the answer for the last x would always be right, and fast.
TEST_F(LatencyVerdict, NoSampleFindsTheXOfTheOneBefore) {
  static std::vector<std::byte> before;
  static int anew;
  before.clear();
  anew = 0;
  qcts_kernel keeper = scalar_kernel(QCTS_OP_LINEAR);
  keeper.run = [](const qcts_problem* problem) {
    const auto* x = static_cast<const std::byte*>(problem->x);
    const std::vector<std::byte> now(x, x + problem->m * problem->ldx_bytes);
    anew += now != before;
    before = now;
    return QCTS_OK;
  };
  const KernelInput input = latency_input(case_of_linear(), 1);
  TimedKernel timed(keeper, input, 1);
  timed.make_ready(1);
  for (int i = 0; i < 5; ++i) timed.time_us(0, 1, false);
  EXPECT_EQ(anew, 5);
  std::vector<std::byte> now(timed.x_bytes());
  timed.read_x(timed.last_calls().back(), 0, now);
  EXPECT_EQ(now, before) << "the verified answer is not the last one";
}

// A clock that reports eight busy threads during a call and none between calls. A neighbour that keeps the
// test waiting between calls lowers the count, so eight leave room above the limit of one.
constexpr uint32_t kPretendedThreads = 8;
double pretended_seconds = 0;

TEST_F(LatencyVerdict, MoreThreadsThanAllowedAreSeen) {
  qcts_kernel greedy = scalar_kernel(QCTS_OP_LINEAR);
  greedy.run = [](const qcts_problem* problem) {
    const auto start = std::chrono::steady_clock::now();
    qcts_status status = QCTS_OK;
    for (int i = 0; i < 100; ++i) status = scalar_kernel(QCTS_OP_LINEAR).run(problem);
    pretended_seconds +=
        kPretendedThreads * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return status;
  };
  context_.spent = [] { return pretended_seconds; };
  const Verdict verdict = judge_kernel(greedy);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("threads busy (limit 1)"), std::string::npos) << verdict.reason;
  EXPECT_EQ(measure(verdict, "median_us"), nullptr);
  context_.threads = kPretendedThreads;
  EXPECT_EQ(judge_kernel(greedy).status, Status::pass);
}

// Spins between calls, so its calls cannot be told from the spinning.
TEST_F(LatencyVerdict, ThreadsThatNeverRestLeaveNoGate) {
  context_.gate_latency = true;
  write_target(1e-9);
  context_.spent = [] {
    return 2 * std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const Verdict verdict = judge_kernel(scalar_kernel(QCTS_OP_LINEAR));
  EXPECT_EQ(verdict.status, Status::inconclusive);
  EXPECT_NE(verdict.reason.find("busy between calls"), std::string::npos) << verdict.reason;
}

// Two threads spin until each has used its CPU time, however long the scheduler makes them wait.
TEST(BusyThreads, TheProcessorsClockCountsEveryThread) {
  constexpr double kEach = 0.1, kLastTick = 0.02;
  const auto spin = [] {
    timespec now{};
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 < kEach);
  };
  const double before = own_cpu_seconds();
  std::thread one(spin), other(spin);
  one.join();
  other.join();
  EXPECT_GE(own_cpu_seconds() - before, 2 * kEach - kLastTick);
}

TEST_F(LatencyVerdict, TheGateHasThreeAnswers) {
  context_.gate_latency = true;
  EXPECT_EQ(judge_kernel(scalar_kernel(QCTS_OP_LINEAR)).status, Status::inconclusive)
      << "a missing target must not pass";
  write_target(1e9);
  const Verdict missed = judge_kernel(scalar_kernel(QCTS_OP_LINEAR));
  // An A/A alarm suspends the verdict, whatever the target.
  EXPECT_TRUE(missed.status == Status::fail || missed.reason.find("not to be trusted") != std::string::npos)
      << missed.reason;
  EXPECT_NE(missed.reason.find("share_of_probe missed"), std::string::npos) << missed.reason;
  write_target(1e-9);
  const Verdict met = judge_kernel(scalar_kernel(QCTS_OP_LINEAR));
  EXPECT_TRUE(met.status == Status::pass || met.reason.find("not to be trusted") != std::string::npos)
      << met.reason;
}

TEST_F(LatencyVerdict, AMissedTargetWithoutAGateIsReported) {
  write_target(1e9);
  const Verdict verdict = judge_kernel(scalar_kernel(QCTS_OP_LINEAR));
  EXPECT_EQ(verdict.status, Status::pass);
  EXPECT_NE(verdict.reason.find("missed"), std::string::npos) << verdict.reason;
  EXPECT_NE(measure(verdict, "target_share_of_probe"), nullptr);
}

TEST_F(LatencyVerdict, ABrokenTargetFileIsNoAnswer) {
  std::ofstream(scratch_.path() / (machine_class(machine()) + ".json")) << R"({"schema": 1})";
  EXPECT_EQ(judge_kernel(scalar_kernel(QCTS_OP_LINEAR)).status, Status::internal);
}

// Reports a given number of microseconds as its own time and counts its calls.
class FakeTarget final : public TimedTarget {
 public:
  explicit FakeTarget(double us) : us_(us) {}
  void call(size_t copy) override {
    last_ = copy;
    ++calls;
  }
  size_t copies() const override { return 3; }
  double time_us(size_t first, size_t count, bool rotate) override {
    TimedTarget::time_us(first, count, rotate);
    return us_;
  }
  int calls = 0;
  size_t last_ = 0;

 private:
  double us_;
};

TEST(Rounds, ASlowPeerSitsOutPairsOfRounds) {
  FakeTarget quick(50), slow(500);
  std::vector<Series> series = {{.name = "quick", .target = &quick}, {.name = "slow", .target = &slow}};
  time_rounds(series, 0.2, 1);
  ASSERT_EQ(series[0].us.size(), series[1].us.size());
  EXPECT_GT(series[1].every, 2u);
  size_t timed = 0;
  for (size_t i = 0; i < series[1].us.size(); ++i) {
    const bool takes_part = i / 2 % series[1].every == 0;
    EXPECT_EQ(std::isnan(series[1].us[i]), !takes_part) << i;
    timed += takes_part;
  }
  EXPECT_LT(2 * timed, series[0].us.size());
  EXPECT_NEAR(abba_interval(series[1].us, series[0].us, 0.95, 1).value, 10, 1e-9);
}

TEST(Rounds, AnUntimedCallGoesBeforeAllButLongColdOnes) {
  FakeTarget cold(30), warm(30), slow(6000);
  Series cold_series{.name = "cold", .target = &cold},
      warm_series{.name = "warm", .target = &warm, .cold = false},
      slow_series{.name = "slow", .target = &slow};
  for (size_t i = 0; i < 4; ++i) {
    cold_series.time_once();
    EXPECT_EQ(cold.last_, (2 * i + 1) % 3) << "the copies rotate, one call is untimed";
    warm_series.time_once();
    EXPECT_EQ(warm.last_, 0u);
    slow_series.time_once();
    EXPECT_EQ(slow.last_, (i + 1) % 3) << "only the first sample has an untimed call before it";
  }
  EXPECT_EQ(cold.calls, 8);
  EXPECT_EQ(warm.calls, 8);
  EXPECT_EQ(slow.calls, 5);
}

}  // namespace
}  // namespace qcts
