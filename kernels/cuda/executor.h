// SPDX-License-Identifier: BSD-3-Clause
// The executor's functions (kernels/emulated/simt*), which device.h calls if a C++ compiler compiles a
// kernel. They run the threads of one block on a processor and check what a GPU leaves undefined. A fault
// ends the launch.
#pragma once

#include <stdint.h>

#include <functional>
#include <vector>

namespace qcts {
struct TensorMap;
}

namespace qcts::simt {

// The place of the thread that runs.
struct Place {
  uint32_t thread, threads;
  uint32_t block[3], grid[3];
};
extern Place place;

// Runs body(context) once in each thread of the grid. Returns nullptr, or the description of a fault, which
// lives until the next launch.
const char* launch(const uint32_t (&grid)[3], uint32_t threads, uint32_t shared_bytes, void (*body)(void*),
                   void* context);

// Launches that wait for their stream, in order. Each returns what launch() would have returned.
using WaitingLaunches = std::vector<std::function<const char*()>>;
// While it is not nullptr, launches of this thread wait there. A problem on a device sets it.
extern thread_local WaitingLaunches* waiting_launches;

enum class Space : uint8_t { global, shared };
uint8_t* shared_memory();
void load(Space space, const void* at, void* value, uint32_t bytes);
void store(Space space, void* at, const void* value, uint32_t bytes);
void atomic_max(uint32_t* at, uint32_t value);
void atomic_or(uint32_t* at, uint32_t value);

void sync_block();
void sync_warp(uint32_t mask);
uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t from);
uint32_t ballot(uint32_t mask, bool value);

void copy_async(void* shared, const void* from, uint32_t bytes, bool valid);
void commit_copies();
void wait_copies(uint32_t unfinished);

void load_matrices(uint32_t* words, const void* row, uint32_t count, bool transposed);
void multiply_bf16(float* d, const uint32_t* a, const uint32_t* b);
void multiply_f16(float* d, const uint32_t* a, const uint32_t* b);
void multiply_s8(int32_t* d, const uint32_t* a, const uint32_t* b);

void make_barrier(uint64_t* barrier, uint32_t arrivals);
void fence_barriers();
void fence_async();
void arrive(uint64_t* barrier, uint32_t expected_bytes);
void wait_barrier(uint64_t* barrier, uint32_t parity);
void copy_box(void* shared, const TensorMap& map, int32_t column, int32_t row, uint64_t* barrier);

enum class Wgmma : uint8_t { bf16, e4m3, s8 };
struct WgmmaOperands {
  Wgmma type;
  uint32_t columns;
  const uint32_t* a_words;  // this lane's four words; if nullptr, `a` says where operand a is
  uint64_t a, b;            // matrix_descriptor()
};
uint64_t matrix_descriptor(const void* shared);
void wgmma_fence();
void wgmma(void* d, const WgmmaOperands& operands);
void wgmma_commit();
void wgmma_wait(uint32_t unfinished);

// Like the GPU's cvt.rn and fma.rn, these round to nearest even, keep subnormals, and turn every NaN into
// 0x7FFF.
float f16_to_f32(uint16_t value);
uint16_t f32_to_f16(float value);
uint16_t f32_to_bf16(float value);
uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c);
uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c);

}  // namespace qcts::simt
