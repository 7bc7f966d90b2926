// SPDX-License-Identifier: BSD-3-Clause
// The executor's instructions as a kernel with the planted fault gives them. Included before each file of
// device kernels (CMake: -include): from there, `simt` in their namespaces means these, which act as those of
// kernels/cuda/executor.h if no fault changes them. So each fault is in the kernels themselves, and none of
// them is written twice.
#pragma once

#include "kernels/cuda/executor.h"

namespace qcts::device::simt {

using namespace qcts::simt;

const char* launch(const uint32_t (&grid)[3], uint32_t threads, uint32_t shared_bytes, void (*body)(void*),
                   void* context);
void load(Space space, const void* at, void* value, uint32_t bytes);
void sync_block();
void sync_warp(uint32_t mask);
void copy_async(void* shared, const void* from, uint32_t bytes, bool valid);
void wait_copies(uint32_t unfinished);
void fence_async();
void arrive(uint64_t* barrier, uint32_t expected_bytes);
void wait_barrier(uint64_t* barrier, uint32_t parity);
void copy_box(void* shared, const TensorMap& map, int32_t column, int32_t row, uint64_t* barrier);
void wgmma_wait(uint32_t unfinished);
void multiply_bf16(float* d, const uint32_t* a, const uint32_t* b);
void multiply_f16(float* d, const uint32_t* a, const uint32_t* b);

}  // namespace qcts::device::simt

namespace qcts {
namespace {

namespace simt = device::simt;  // for kernels/cuda/launch.h

}  // namespace
}  // namespace qcts
