// SPDX-License-Identifier: BSD-3-Clause
// Tests that a provider in a host answers as in this process, and that its host's end costs only one case.
#include "suites/providers/hosted_provider.h"

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/numerics/noise.h"
#include "suites/base/memory.h"
#include "suites/base/paths.h"
#include "suites/providers/kernel_run.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

using testing::HasSubstr;

KernelInput dequantize_input(int64_t n, int64_t k, uint64_t seed) {
  KernelInput input;
  input.op = Op::dequantize;
  input.scheme = find_scheme("int8_row");
  input.weight = {DType::float32, n, k};
  const std::vector<std::byte> w = noise_bytes(seed, static_cast<size_t>(n * k), DType::float32);
  input.planes = input.scheme->quantize({DType::float32, n, k, w});
  return input;
}

std::vector<std::byte> right_answer(const KernelInput& input) {
  return input.scheme->dequantize(input.planes, input.weight);
}

class Hosted : public testing::Test {
 protected:
  const qcts_kernel& dequantize_of(const std::string& library) {
    provider_.emplace(build_path("lib/selftest/" + library + ".so"), CageRequest{true, scratch_.path()}, 0);
    registry_.add(provider_->table(), "library", provider_->file_calls());
    return *registry_.find(QCTS_OP_DEQUANTIZE, "int8_row").front()->kernel;
  }

  ScratchFolder scratch_;
  std::optional<HostedProvider> provider_;
  Registry registry_;
};

TEST_F(Hosted, AnswersAsInThisProcess) {
  const KernelInput input = dequantize_input(7, 24, 1);
  KernelRun run(dequantize_of("minimal"), input, {1, 1, 3});
  ASSERT_EQ(run.supports().status, QCTS_OK) << run.supports().reason;
  EXPECT_EQ(run.supports_before_data().status, QCTS_OK);
  for (const Poison poison : {Poison::nan, Poison::zeros})
    EXPECT_EQ(run.run(poison).y, right_answer(input)) << static_cast<int>(poison);
}

TEST_F(Hosted, DescribesItselfAsInThisProcess) {
  dequantize_of("minimal");
  Registry here;
  here.load(build_path("lib/selftest/minimal.so"));
  ASSERT_EQ(registry_.implementations().size(), here.implementations().size());
  for (size_t i = 0; i < here.implementations().size(); ++i) {
    const qcts_kernel &there = *registry_.implementations()[i].kernel,
                      &own = *here.implementations()[i].kernel;
    EXPECT_EQ(there.op, own.op);
    EXPECT_STREQ(there.scheme, own.scheme);
    EXPECT_STREQ(there.variant, own.variant);
    EXPECT_EQ(there.claims, own.claims);
    EXPECT_EQ(std::memcmp(&there.numerics, &own.numerics, sizeof own.numerics), 0);
    EXPECT_EQ(there.prepare == nullptr, own.prepare == nullptr);
  }
}

TEST_F(Hosted, SaysWhyItDeclines) {
  KernelInput input = dequantize_input(7, 24, 1);
  input.weight.dtype = DType::bfloat16;
  const KernelRun run(dequantize_of("minimal"), input, {});
  EXPECT_EQ(run.supports().status, QCTS_UNSUPPORTED);
  EXPECT_EQ(run.supports().reason, "float32 weights only");
}

// Two threads call at once, each with its own buffers, which the other's calls must not close.
TEST_F(Hosted, ServesTwoCallersAtOnce) {
  const qcts_kernel& kernel = dequantize_of("minimal");
  const KernelInput inputs[] = {dequantize_input(64, 512, 1), dequantize_input(48, 384, 2)};
  std::array<int, 2> right{};
  const auto call = [&](size_t i) {
    KernelRun run(kernel, inputs[i], {});
    const std::vector<std::byte> want = right_answer(inputs[i]);
    for (int n = 0; n < 200; ++n) right[i] += run.run(Poison::zeros).y == want ? 1 : 0;
  };
  std::jthread other(call, size_t{1});
  call(0);
  other.join();
  EXPECT_EQ(right, (std::array<int, 2>{200, 200}));
}

TEST_F(Hosted, IsIsolated) {
  dequantize_of("minimal");
  if (kMemoryCounts)
    EXPECT_THAT(provider_->isolation(), testing::Not(HasSubstr("its inputs")));
  else
    EXPECT_THAT(provider_->isolation(), testing::StartsWith("not isolated")) << "no filter with sanitizers";
}

// A folder with the library in it cannot be covered, and that is not kept quiet.
TEST_F(Hosted, SaysWhichFoldersItCanRead) {
  const std::filesystem::path library = build_path("lib/selftest/minimal.so");
  const HostedProvider provider(library, CageRequest{true, scratch_.path(), {library.parent_path()}}, 0);
  EXPECT_THAT(provider.isolation(), HasSubstr("read the goldens"));
}

// A batch is as many runs, between two readings of this process's clock.
class HostedBatch : public Hosted {
 protected:
  // Runs `calls` problems of one shape in a batch and returns its time. `before` gets the first byte of y.
  BatchTime run(const qcts_kernel& kernel, size_t calls, const std::function<void(std::byte*)>& before) {
    const KernelInput input = dequantize_input(16, 64, 3);
    const ProblemBuilder builder(input, 1);
    HostMemory& memory = provider_->memory();
    const size_t y_bytes = right_answer(input).size();
    std::vector<qcts_plane> planes;
    const auto block = [&](const char* name, HostAccess access, size_t bytes) {
      const size_t whole = (bytes + 4095) / 4096 * 4096;
      return taken_.emplace_back(memory.take(name, access, whole, 0, whole));
    };
    for (const Plane& plane : input.planes) {
      const auto place = block(plane.name.c_str(), HostAccess::reads, plane.bytes.size());
      std::memcpy(place.data(), plane.bytes.data(), plane.bytes.size());
      specs_.push_back({plane.name, plane.dtype, plane.shape});
      planes.push_back(abi_plane(specs_.back(), place.data()));
    }
    const auto y = block("y", HostAccess::writes, calls * y_bytes);
    std::vector<qcts_problem> problems(calls, builder.problem());
    for (size_t i = 0; i < calls; ++i) {
      problems[i].planes = planes.data();
      problems[i].n_planes = static_cast<uint32_t>(planes.size());
      problems[i].y = y.data() + i * y_bytes;
    }
    const BatchTime time = provider_run_batch(kernel, problems, [&] { before(y.data()); });
    for (size_t i = 0; i < calls; ++i)
      right_ += std::memcmp(y.data() + i * y_bytes, right_answer(input).data(), y_bytes) == 0 ? 1u : 0u;
    return time;
  }

  std::deque<PlaneSpec> specs_;
  std::vector<std::span<std::byte>> taken_;
  size_t right_ = 0;
};

TEST_F(HostedBatch, RunsEveryProblemAfterTheJudgeIsReady) {
  const qcts_kernel& kernel = dequantize_of("minimal");
  std::byte untouched{};
  const BatchTime time = run(kernel, 50, [&](std::byte* y) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    untouched = *y;
  });
  EXPECT_EQ(right_, 50u);
  EXPECT_EQ(untouched, std::byte{0}) << "it began before it was told to";
  EXPECT_GT(time.wall_us, 0);
  EXPECT_LT(time.wall_us, 20e3) << "the judge's preparations count";
  EXPECT_GT(provider_run_batch(kernel, {}, [] {}).wall_us, 0) << "a batch without calls is the way and back";
}

TEST_F(HostedBatch, AHostThatDiesOrThrowsInABatchCostsTheCase) {
  const qcts_kernel& kernel = dequantize_of("qcts_faulty_aborts");
  KernelInput struck = dequantize_input(4, 13, 1);
  const ProblemBuilder builder(struck, 1);
  const qcts_problem problem = builder.problem();
  EXPECT_THROW(provider_run_batch(kernel, {&problem, 1}, [] {}), HostFailure);
}

struct End {
  const char *library, *reason;
};
class HostedEnd : public Hosted, public testing::WithParamInterface<End> {};

TEST_P(HostedEnd, IsNoAnswer) {
  KernelRun run(dequantize_of(GetParam().library), dequantize_input(7, 13, 1), {});
  try {
    run.run(Poison::nan);
    ADD_FAILURE() << "an answer";
  } catch (const HostFailure& failure) {
    EXPECT_THAT(failure.reason, HasSubstr(GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(Host, HostedEnd,
                         testing::Values(End{"qcts_faulty_aborts", "SIGABRT"},
                                         End{"qcts_faulty_exits", "exit code 0"},
                                         End{"qcts_faulty_writes_to_fds", "answered out of turn"}));

TEST_F(Hosted, AWriteIntoAnInputIsNamed) {
  KernelRun run(dequantize_of("qcts_faulty_writes_input"), dequantize_input(7, 13, 1), {});
  try {
    run.run(Poison::nan);
    ADD_FAILURE() << "an answer";
  } catch (const OverrunFault& fault) {
    EXPECT_STREQ(fault.what(), "wrote into its input qdata");
  }
}

// A few bytes outside a buffer harm nobody where memory goes on, so that only an edge shows them.
struct Edge {
  const char* library;
  Flush flush;
  const char* reason;
};
class HostedEdge : public Hosted, public testing::WithParamInterface<Edge> {};

TEST_P(HostedEdge, IsNotCrossed) {
  const KernelInput input = dequantize_input(7, 13, 1);
  const qcts_kernel& kernel = dequantize_of(GetParam().library);
  EXPECT_EQ(KernelRun(kernel, input, {}).run(Poison::nan).y.size(), right_answer(input).size());
  RunOptions options;
  options.flush = GetParam().flush;
  KernelRun run(kernel, input, options);
  try {
    EXPECT_EQ(run.run(Poison::nan).y, right_answer(input));
    EXPECT_STREQ(GetParam().reason, "");
  } catch (const OverrunFault& fault) {
    EXPECT_STREQ(fault.what(), GetParam().reason);
  }
}

INSTANTIATE_TEST_SUITE_P(Host, HostedEdge,
                         testing::Values(Edge{"minimal", Flush::end, ""}, Edge{"minimal", Flush::start, ""},
                                         Edge{"qcts_faulty_reads_past_end", Flush::end,
                                              "read past the end of qdata, at +0"},
                                         Edge{"qcts_faulty_reads_before_start", Flush::start,
                                              "read before the start of qdata, at -1"}));

TEST_F(Hosted, AnAnswerThatChangesLaterIsNamed) {
  const KernelInput input = dequantize_input(7, 13, 1);
  KernelRun run(dequantize_of("qcts_faulty_writes_later"), input, {});
  const KernelAnswer answer = run.run(Poison::nan);
  EXPECT_EQ(answer.y, right_answer(input));
  std::string named;
  for (int i = 0; i < 5000 && named.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    try {
      run.check_unchanged(answer);
    } catch (const ProviderFault& fault) {
      named = fault.what();
    }
  }
  EXPECT_EQ(named, "y changed after run() had returned");
}

// Its thread writes where the next call has closed the memory.
TEST_F(Hosted, AWriteAfterTheCallIsNamed) {
  KernelRun first(dequantize_of("qcts_faulty_writes_later"), dequantize_input(7, 13, 1), {});
  first.run(Poison::nan);
  KernelRun next(*registry_.find(QCTS_OP_DEQUANTIZE, "int8_row").front()->kernel, dequantize_input(7, 24, 1),
                 {});
  try {
    for (int i = 0; i < 5000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      next.run(Poison::nan);
    }
    ADD_FAILURE() << "nobody wrote";
  } catch (const OverrunFault& fault) {
    EXPECT_STREQ(fault.what(), "used y after run() had returned");
  }
}

TEST_F(Hosted, ALibraryThatCannotBeLoadedIsNamed) {
  try {
    dequantize_of("no_such_library");
    ADD_FAILURE() << "it was loaded";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no_such_library.so"));
  }
}

}  // namespace
}  // namespace qcts
