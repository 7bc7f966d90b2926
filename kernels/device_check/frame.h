// SPDX-License-Identifier: BSD-3-Clause
// Launches that give each case to a thread, a warp or a block. A Body has run(), and the words of a case in
// kIn and kOut. A Body of a warp or a block has kSharedBytes; that of a warp also has kCases, that of a block
// kThreads.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/device_check/check.h"

#if defined(__CUDACC__)
#define QCTS_SIDE on_device
#else
#define QCTS_SIDE on_executor
#endif

namespace qcts::device_check {
namespace QCTS_SIDE {
// Each returns the checks of one file.
std::vector<Check> checks_of_numbers();
std::vector<Check> checks_of_memory();
std::vector<Check> checks_of_warps();
std::vector<Check> checks_of_tiles();
std::vector<Check> checks_of_barriers();
std::vector<Check> checks_of_wgmma();
std::vector<Check> checks_of_zeros();
}  // namespace QCTS_SIDE

namespace {

using namespace qcts::device;

constexpr uint32_t kWordBytes = 4;

QCTS_DEVICE uint32_t load_word(const uint8_t* at, uint32_t word) {
  return load_global<uint32_t>(at + word * kWordBytes);
}
QCTS_DEVICE void store_word(uint8_t* at, uint32_t word, uint32_t value) {
  store_global(at + word * kWordBytes, value);
}
template <class Body>
QCTS_DEVICE const uint8_t* in_of(const Cases& cases, int64_t index) {
  return cases.in + index * Body::kIn * kWordBytes;
}
template <class Body>
QCTS_DEVICE uint8_t* out_of(const Cases& cases, int64_t index) {
  return cases.out + index * Body::kOut * kWordBytes;
}

// Calls run(in, out) in one thread for each case.
constexpr uint32_t kCaseThreads = 256;
template <class Body>
__global__ void __launch_bounds__(kCaseThreads) each_thread(const Cases cases) {
  const int64_t index = static_cast<int64_t>(block_x()) * kCaseThreads + thread_index();
  if (index < cases.count) Body::run(in_of<Body>(cases, index), out_of<Body>(cases, index));
}
template <class Body>
qcts_status by_thread(const Cases& cases) {
  return launch(qcts_problem{}, {.blocks_x = blocks_for(cases.count, kCaseThreads), .threads = kCaseThreads},
                each_thread<Body>, cases);
}

// Calls run(in, out, shared) in a warp, for kCases cases one after the other.
constexpr uint32_t kWarps = 4;
template <class Body>
__global__ void __launch_bounds__(kWarps* kWarpLanes) each_warp(const Cases cases) {
  for (uint32_t i = 0; i < Body::kCases; ++i) {
    const int64_t index = (static_cast<int64_t>(block_x()) * kWarps + warp_index()) * Body::kCases + i;
    if (index >= cases.count) return;
    if (i > 0) sync_warp();
    Body::run(in_of<Body>(cases, index), out_of<Body>(cases, index),
              shared_memory() + warp_index() * Body::kSharedBytes);
  }
}
template <class Body>
qcts_status by_warp(const Cases& cases) {
  return launch(qcts_problem{},
                {.blocks_x = blocks_for(cases.count, kWarps * Body::kCases),
                 .threads = kWarps * kWarpLanes,
                 .shared_bytes = kWarps * Body::kSharedBytes},
                each_warp<Body>, cases);
}

// Calls run(in, out) in a block of kThreads threads for each case.
template <class Body>
__global__ void __launch_bounds__(Body::kThreads) each_block(const Cases cases) {
  Body::run(in_of<Body>(cases, block_x()), out_of<Body>(cases, block_x()));
}
template <class Body>
qcts_status by_block(const Cases& cases) {
  return launch(qcts_problem{},
                {.blocks_x = cases.count, .threads = Body::kThreads, .shared_bytes = Body::kSharedBytes},
                each_block<Body>, cases);
}

}  // namespace
}  // namespace qcts::device_check
