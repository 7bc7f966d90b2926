// SPDX-License-Identifier: BSD-3-Clause
// The executor's instructions, changed by the planted fault. This file is included before each file of device
// kernels (CMake: -include). From there on, `simt` in their namespaces means these functions. They act like
// those of kernels/cuda/executor.h if no fault changes them. So each fault is in the kernels themselves, and
// no kernel is written twice.
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
