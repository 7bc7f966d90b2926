// SPDX-License-Identifier: BSD-3-Clause
// Tests that a kernel gets the alignment that it declares, and no more than that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "suites/providers/kernel_run.h"
#include "suites/providers/scalar_kernel_test.h"

namespace qcts {
namespace {

struct Seen {
  uintptr_t addresses = 0;  // all pointers, or-ed
  uint64_t rows = 0;        // both distances between rows, or-ed
};
Seen seen;

qcts_status run_and_look(const qcts_problem* problem) {
  const auto look = [](const void* address) { seen.addresses |= reinterpret_cast<uintptr_t>(address); };
  for (uint32_t i = 0; i < problem->n_planes; ++i) look(problem->planes[i].data);
  look(problem->x);
  look(problem->y);
  seen.rows |= static_cast<uint64_t>(problem->ldx_bytes) | static_cast<uint64_t>(problem->ldy_bytes);
  return scalar_kernel(QCTS_OP_LINEAR).run(problem);
}

KernelInput linear_input() {
  KernelInput input;
  input.scheme = find_scheme("int8_row");
  input.weight = {DType::bfloat16, 5, 24};
  input.m = 3;
  input.x.resize(3 * 24 * 2);
  for (const PlaneSpec& spec : input.scheme->plane_specs(input.weight, kPlain))
    input.planes.push_back({spec.name, spec.dtype, spec.shape, std::vector<std::byte>(spec.bytes())});
  input.activation = input.scheme->policy_named("weight_only");
  return input;
}

Seen seen_with(uint32_t align_bytes, uint32_t row_align_bytes, const RunOptions& options) {
  qcts_kernel kernel = scalar_kernel(QCTS_OP_LINEAR);
  kernel.align_bytes = align_bytes;
  kernel.row_align_bytes = row_align_bytes;
  kernel.run = run_and_look;
  seen = {};
  KernelRun(kernel, linear_input(), options).run(Poison::nan);
  return seen;
}

TEST(AlignedRun, AKernelGetsTheAlignmentThatItNeeds) {
  for (const RunOptions& options : {RunOptions{1, 3, 5}, RunOptions{.threads = 1, .flush = Flush::end}}) {
    const Seen with = seen_with(32, 64, options);
    EXPECT_EQ(with.addresses % 32, 0u);
    EXPECT_EQ(with.rows % 64, 0u);
  }
}

TEST(AlignedRun, AKernelThatNeedsNoneGetsNone) {
  const Seen without = seen_with(0, 0, {1, 3, 5});
  EXPECT_NE(without.addresses % 4, 0u);
  EXPECT_NE(without.rows % 4, 0u);
}

}  // namespace
}  // namespace qcts
