// SPDX-License-Identifier: BSD-3-Clause
// Judges the kernels that fetch whole boxes and multiply whole tiles (kernels/sm90a, kernels/sm80/decode.h)
// at the edges of those, in the executor: matrices that a tile just holds and just does not, rows at
// multiples of 16 bytes, and more stages than a ring has. Few of the plan's shapes are so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/inputs/generate.h"
#include "suites/judge/judge.h"
#include "suites/judge/replay.h"
#include "suites/providers/kernel_run.h"

namespace qcts {
namespace {

struct BoxCase {
  const char* scheme;
  const char* activation;
  DType x;
  int64_t m, n, k;
  const char* variant = "sm90a";
  const char* layout = "plain";
};
std::string title_of(const BoxCase& c) {
  const std::string layout = std::string_view(c.layout) == "plain" ? "" : std::string("_") + c.layout;
  return std::string(c.scheme) + layout + "_" + c.activation + "_m" + std::to_string(c.m) + "_n" +
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
  Layout layout = kPlain;
  for (const Layout of : scheme.layouts())
    if (of.name() == c.layout) layout = of;
  ASSERT_EQ(layout.name(), c.layout);
  const TestVector vector = test_vector_for(generate(scheme, Op::linear, layout, synthetic, 3).input);
  int judged = 0;
  for (const Implementation& implementation : emulated_gpu().implementations()) {
    if (implementation.kernel->op != QCTS_OP_LINEAR || implementation.family() != scheme.family() ||
        std::string_view(implementation.kernel->variant) != c.variant || !implementation.takes(c.activation))
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

BoxCase decoding(const char* scheme, DType x, int64_t m, int64_t n, int64_t k, const char* layout = "plain") {
  return {scheme, "weight_only", x, m, n, k, "sm80", layout};
}
// A block has 32 columns, and eight warps, or seven for groups below 128, with stages of 128 k.
INSTANTIATE_TEST_SUITE_P(
    Decode, Boxes,
    testing::Values(
        decoding("int4_tinygemm_g32", DType::bfloat16, 1, 33, 96),
        decoding("int4_tinygemm_g64", DType::float16, 7, 31, 960),     // a warp has two stages
        decoding("int4_tinygemm_g128", DType::bfloat16, 8, 64, 3200),  // and four, of a ring of three
        decoding("int4_plain_g256", DType::float16, 9, 32, 2304),
        decoding("int4_tinygemm_g32", DType::bfloat16, 16, 40, 3616),
        decoding("int4_plain_g32", DType::float16, 8, 34, 2720),
        decoding("int4_plain_g128", DType::bfloat16, 16, 30, 3200),
        decoding("int4_plain_g64", DType::bfloat16, 15, 62, 1856),
        decoding("int4_plain_sym_g256", DType::float16, 1, 2, 4096),
        decoding("int4_plain_g32", DType::bfloat16, 12, 31, 96),  // n is odd, so it takes another frame
        decoding("int4_tinygemm_g32", DType::bfloat16, 8, 33, 96, "tile_packed_4d"),
        decoding("int4_tinygemm_g128", DType::bfloat16, 3, 40, 3200, "tile_packed_4d"),
        decoding("int4_tinygemm_g64", DType::bfloat16, 16, 24, 1856, "tile_packed_4d"),
        decoding("int4_tinygemm_g128", DType::bfloat16, 9, 56, 2304, "tile_packed_4d")),
    [](const auto& info) { return title_of(info.param); });

TEST(Decode, GivesARowTheSameBitsAmongAnyNumberOfRows) {
  for (const char* name : {"int4_tinygemm_g128", "int4_plain_g32"}) {
    const Scheme& scheme = *find_scheme(name);
    Synthetic synthetic;
    synthetic.weight = {DType::bfloat16, 40, 2304};
    synthetic.m = 16;
    KernelInput input = generate(scheme, Op::linear, kPlain, synthetic, 3).input;
    const size_t row_bytes = input.x.size() / 16;
    for (const Implementation& implementation : emulated_gpu().implementations()) {
      if (implementation.kernel->op != QCTS_OP_LINEAR || implementation.family() != scheme.family() ||
          std::string_view(implementation.kernel->variant) != "sm80")
        continue;
      const auto y_of = [&](int64_t m) {
        input.m = m;
        KernelInput part = input;
        part.x.resize(static_cast<size_t>(m) * row_bytes);
        return KernelRun(*implementation.kernel, part, {1, 0, 0}).run(Poison::nan).y;
      };
      const std::vector<std::byte> all = y_of(16);
      for (const int64_t m : {1, 8, 9}) {
        const std::vector<std::byte> part = y_of(m);
        ASSERT_EQ(part.size(), all.size() / 16 * static_cast<size_t>(m));
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin())) << name << ", m = " << m;
      }
    }
  }
}

}  // namespace
}  // namespace qcts
