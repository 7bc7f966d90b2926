// SPDX-License-Identifier: BSD-3-Clause
// Judges the kernels that fetch whole boxes and multiply whole tiles (kernels/sm90a) at the edges of those,
// in the executor: matrices that a tile just holds and just does not, rows at multiples of 16 bytes, and more
// stages than a ring has. Few of the plan's shapes are so.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/inputs/generate.h"
#include "suites/judge/judge.h"
#include "suites/judge/replay.h"

namespace qcts {
namespace {

struct BoxCase {
  const char* scheme;
  const char* activation;
  DType x;
  int64_t m, n, k;
};
std::string title_of(const BoxCase& c) {
  return std::string(c.scheme) + "_" + c.activation + "_m" + std::to_string(c.m) + "_n" +
         std::to_string(c.n) + "_k" + std::to_string(c.k);
}
void PrintTo(const BoxCase& c, std::ostream* out) { *out << title_of(c); }

const Registry& emulated_gpu() {
  static const auto registry = [] {
    auto loaded = std::make_unique<Registry>();
    loaded->load(build_path("lib/plugins/libqcts_cudaemu.so"));
    return loaded;
  }();
  return *registry;
}

class Boxes : public testing::TestWithParam<BoxCase> {};

TEST_P(Boxes, AreRightAtTheEdgesOfTiles) {
  const BoxCase& c = GetParam();
  const Scheme& scheme = *find_scheme(c.scheme);
  Synthetic synthetic;
  synthetic.weight = {c.x, c.n, c.k};
  synthetic.m = c.m;
  for (const Policy policy : scheme.activations())
    if (policy.name() == c.activation) synthetic.activation = policy;
  const TestVector vector = test_vector_for(generate(scheme, Op::linear, kPlain, synthetic, 3).input);
  int judged = 0;
  for (const Implementation& implementation : emulated_gpu().implementations()) {
    if (implementation.kernel->op != QCTS_OP_LINEAR || implementation.family() != scheme.family() ||
        std::string_view(implementation.kernel->variant) != "sm90a" || !implementation.takes(c.activation))
      continue;
    for (const char* schedule : {"1", "2"}) {  // copies late and early, threads in random order
      ::setenv("QCTS_SCHEDULE", schedule, 1);
      Verdict verdict;
      judge_guarded(verdict, [&] { judge_test_vector(*implementation.kernel, vector, {}, verdict); });
      EXPECT_EQ(verdict.status, Status::pass) << "schedule " << schedule << ": " << verdict.reason;
    }
    ::unsetenv("QCTS_SCHEDULE");
    ++judged;
  }
  EXPECT_EQ(judged, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Fp8, Boxes,
    testing::Values(BoxCase{"fp8_row", "dyn_row", DType::bfloat16, 16, 64, 128},
                    BoxCase{"fp8_row", "dyn_row", DType::bfloat16, 17, 65, 912},  // 8 stages in a ring of 6
                    BoxCase{"fp8_row", "dyn_row_mslk", DType::float16, 64, 63, 144},
                    BoxCase{"fp8_row", "dyn_row", DType::bfloat16, 65, 129, 1040},
                    BoxCase{"fp8_row", "dyn_row", DType::float32, 129, 64, 272},
                    BoxCase{"fp8_row", "dyn_row", DType::bfloat16, 130, 1100, 16},  // two bands of blocks
                    BoxCase{"fp8_e4m3_tensor", "dyn_tensor", DType::bfloat16, 128, 128, 256},
                    BoxCase{"fp8_e4m3_tensor", "static_tensor", DType::bfloat16, 33, 72, 1024}),
    [](const auto& info) { return title_of(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Int4, Boxes,
    testing::Values(BoxCase{"int4_tinygemm_g32", "weight_only", DType::bfloat16, 16, 64, 256},
                    BoxCase{"int4_plain_g64", "weight_only", DType::bfloat16, 17, 65, 1664},  // 7 stages of 5
                    BoxCase{"int4_plain_g32", "weight_only", DType::bfloat16, 64, 63, 288},
                    BoxCase{"int4_tinygemm_g128", "weight_only", DType::bfloat16, 65, 129, 1152},
                    BoxCase{"int4_plain_sym_g32", "weight_only", DType::bfloat16, 129, 64, 96},
                    BoxCase{"int4_tinygemm_g64", "weight_only", DType::bfloat16, 130, 1100, 64},
                    BoxCase{"int4_plain_g256", "weight_only", DType::bfloat16, 128, 128, 512}),
    [](const auto& info) { return title_of(info.param); });

}  // namespace
}  // namespace qcts
