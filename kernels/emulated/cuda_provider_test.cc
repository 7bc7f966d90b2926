// SPDX-License-Identifier: BSD-3-Clause
// Tests that the CUDA plug-in loads without a GPU and a driver, and that its kernels decline and give the
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "kernels/registry.h"

namespace qcts {
namespace {

TEST(CudaProvider, LoadsWithoutADriverAndDeclinesByName) {
  const std::filesystem::path plugin = build_path("lib/plugins/cuda/libqcts_cuda.so");
  if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "built without nvcc";
  Registry registry;
  registry.load(plugin);
  ASSERT_EQ(registry.providers().size(), 1u);
  EXPECT_EQ(registry.providers()[0].name, "cuda");
  ASSERT_FALSE(registry.implementations().empty());
  qcts_scheme_params params = {};
  params.struct_size = sizeof params;
  qcts_problem problem = {};
  problem.struct_size = sizeof problem;
  problem.scheme_name = "int8_row";
  problem.params = &params;
  for (const Implementation& implementation : registry.implementations()) {
    EXPECT_TRUE(std::string(implementation.kernel->variant).starts_with("sm")) << implementation.name();
    const std::string scheme = implementation.kernel->scheme;
    const size_t colon = scheme.find(':');
    const std::string policy =
        colon == scheme.npos ? "weight_only" : scheme.substr(colon + 1, scheme.find(',') - colon - 1);
    problem.activation = policy.c_str();
    char why[256] = "";
    EXPECT_EQ(implementation.kernel->supports(&problem, why, sizeof why), QCTS_UNSUPPORTED);
    EXPECT_THAT(why, testing::HasSubstr("runs on a CUDA device only")) << implementation.kernel->scheme;
  }
}

// cudaemu has the same kernels. They claim to be emulated and give a reason for failures.
TEST(CudaProvider, IsEmulatedByCudaemu) {
  Registry registry;
  registry.load(build_path("lib/plugins/libqcts_cudaemu.so"));
  ASSERT_EQ(registry.providers()[0].name, "cudaemu");
  ASSERT_FALSE(registry.implementations().empty());
  for (const Implementation& implementation : registry.implementations()) {
    EXPECT_TRUE(implementation.kernel->claims & QCTS_CLAIM_EMULATED) << implementation.kernel->scheme;
    EXPECT_TRUE(implementation.kernel->claims & QCTS_CLAIM_SCHEDULES) << implementation.kernel->scheme;
    EXPECT_NE(implementation.kernel->failure, nullptr) << implementation.kernel->scheme;
  }
}

}  // namespace
}  // namespace qcts
