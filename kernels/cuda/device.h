// SPDX-License-Identifier: BSD-3-Clause
// The GPU instructions that kernels use. Each is wrapped once, with two bodies: CUDA or PTX for nvcc, and a
// call of the executor (kernels/emulated/simt*) for a C++ compiler. No other file contains inline PTX.
//
// A kernel is a function marked __global__. It touches memory only through these functions, and gets its
// place in the launch from them. Its blocks are one-dimensional and consist of whole warps. Its only shared
// memory is the arena shared_memory(). It has no static or global variables. The executor checks each access
// against the buffers of the problem, the arena, and the alignment of its type.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define QCTS_DEVICE __device__ __forceinline__
#define QCTS_UNROLL _Pragma("unroll")
#else
#include "kernels/cuda/executor.h"
#define QCTS_DEVICE inline
#define QCTS_UNROLL
#define __global__
#define __launch_bounds__(...)
#endif

namespace qcts::device {
namespace {

constexpr uint32_t kWarpLanes = 32, kAllLanes = 0xFFFFFFFFu;

struct alignas(8) Words2 {
  uint32_t word[2];
};
struct alignas(16) Words4 {
  uint32_t word[4];
};

// Place in the launch.

#if defined(__CUDACC__)
QCTS_DEVICE uint32_t thread_index() { return threadIdx.x; }
QCTS_DEVICE uint32_t block_threads() { return blockDim.x; }
QCTS_DEVICE uint32_t block_x() { return blockIdx.x; }
QCTS_DEVICE uint32_t block_y() { return blockIdx.y; }
QCTS_DEVICE uint32_t block_z() { return blockIdx.z; }
QCTS_DEVICE uint32_t grid_x() { return gridDim.x; }
QCTS_DEVICE uint32_t grid_y() { return gridDim.y; }
#else
QCTS_DEVICE uint32_t thread_index() { return simt::place.thread; }
QCTS_DEVICE uint32_t block_threads() { return simt::place.threads; }
QCTS_DEVICE uint32_t block_x() { return simt::place.block[0]; }
QCTS_DEVICE uint32_t block_y() { return simt::place.block[1]; }
QCTS_DEVICE uint32_t block_z() { return simt::place.block[2]; }
QCTS_DEVICE uint32_t grid_x() { return simt::place.grid[0]; }
QCTS_DEVICE uint32_t grid_y() { return simt::place.grid[1]; }
#endif
QCTS_DEVICE uint32_t lane_index() { return thread_index() % kWarpLanes; }
QCTS_DEVICE uint32_t warp_index() { return thread_index() / kWarpLanes; }

// Memory.
// T has 1, 2, 4, 8 or 16 bytes, and `at` is a multiple of that.

#if defined(__CUDACC__)
// Returns the dynamic shared memory of the block, at a multiple of 1024 bytes. Its contents are undefined.
QCTS_DEVICE uint8_t* shared_memory() {
  extern __shared__ __align__(1024) uint8_t qcts_arena[];
  return qcts_arena;
}
// shared_place() turns a pointer to shared memory into 32 bits, which keep() can keep and which may grow.
// shared_at() turns them back.
QCTS_DEVICE int shared_place(const uint8_t* at) { return static_cast<int>(__cvta_generic_to_shared(at)); }
QCTS_DEVICE uint8_t* shared_at(int place) {
  return static_cast<uint8_t*>(__cvta_shared_to_generic(static_cast<uint32_t>(place)));
}
template <int kBytes>
struct Plain;
template <>
struct Plain<1> {
  using Type = uint8_t;
};
template <>
struct Plain<2> {
  using Type = uint16_t;
};
template <>
struct Plain<4> {
  using Type = uint32_t;
};
template <>
struct Plain<8> {
  using Type = uint2;
};
template <>
struct Plain<16> {
  using Type = uint4;
};
// Reads memory that nothing writes while the kernel runs.
template <class T>
QCTS_DEVICE T load_global(const void* at) {
  return __builtin_bit_cast(T, __ldg(static_cast<const typename Plain<sizeof(T)>::Type*>(at)));
}
// Does the same for 16 bytes that are used once, as weights are. They are not kept in L1, and L2
// fetches 128 bytes.
QCTS_DEVICE Words4 load_stream(const void* at) {
  Words4 v;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
      : "l"(at));
  return v;
}
template <class T>
QCTS_DEVICE void store_global(void* at, T value) {
  using Type = typename Plain<sizeof(T)>::Type;
  *static_cast<Type*>(at) = __builtin_bit_cast(Type, value);
}
// Reads memory that this kernel also writes, and shared memory.
template <class T>
QCTS_DEVICE T load_written(const void* at) {
  return __builtin_bit_cast(T, *static_cast<const typename Plain<sizeof(T)>::Type*>(at));
}
template <class T>
QCTS_DEVICE T load_shared(const void* at) {
  return load_written<T>(at);
}
template <class T>
QCTS_DEVICE void store_shared(void* at, T value) {
  store_global(at, value);
}
// These are atomic operations on global memory. The result does not depend on the order of the calls.
QCTS_DEVICE void atomic_max(uint32_t* at, uint32_t value) { atomicMax(at, value); }
QCTS_DEVICE void atomic_or(uint32_t* at, uint32_t value) { atomicOr(at, value); }
#else
QCTS_DEVICE uint8_t* shared_memory() { return simt::shared_memory(); }
QCTS_DEVICE int shared_place(const uint8_t* at) { return static_cast<int>(at - simt::shared_memory()); }
QCTS_DEVICE uint8_t* shared_at(int place) { return simt::shared_memory() + place; }
template <class T>
QCTS_DEVICE T load_global(const void* at) {
  T value;
  simt::load(simt::Space::global, at, &value, sizeof(T));
  return value;
}
QCTS_DEVICE Words4 load_stream(const void* at) { return load_global<Words4>(at); }
template <class T>
QCTS_DEVICE void store_global(void* at, T value) {
  simt::store(simt::Space::global, at, &value, sizeof(T));
}
template <class T>
QCTS_DEVICE T load_written(const void* at) {
  return load_global<T>(at);
}
template <class T>
QCTS_DEVICE T load_shared(const void* at) {
  T value;
  simt::load(simt::Space::shared, at, &value, sizeof(T));
  return value;
}
template <class T>
QCTS_DEVICE void store_shared(void* at, T value) {
  simt::store(simt::Space::shared, at, &value, sizeof(T));
}
QCTS_DEVICE void atomic_max(uint32_t* at, uint32_t value) { simt::atomic_max(at, value); }
QCTS_DEVICE void atomic_or(uint32_t* at, uint32_t value) { simt::atomic_or(at, value); }
#endif

// Keeps a value that does not change in a loop in a register. Otherwise the compiler may compute it again in
// each iteration.
#if defined(__CUDACC__)
QCTS_DEVICE void keep(int& value) { asm volatile("" : "+r"(value)); }
QCTS_DEVICE void keep(const uint8_t*& pointer) { asm volatile("" : "+l"(pointer)); }
#else
QCTS_DEVICE void keep(int&) {}
QCTS_DEVICE void keep(const uint8_t*&) {}
#endif

// Waiting and warps.
// All lanes of `mask` call the same function with the same mask.

#if defined(__CUDACC__)
QCTS_DEVICE void sync_block() { __syncthreads(); }
QCTS_DEVICE void sync_warp(uint32_t mask = kAllLanes) { __syncwarp(mask); }
// Returns the value of lane `from`, which is in the mask.
QCTS_DEVICE uint32_t shuffle(uint32_t value, uint32_t from, uint32_t mask = kAllLanes) {
  return __shfl_sync(mask, value, static_cast<int>(from));
}
QCTS_DEVICE uint32_t shuffle_xor(uint32_t value, uint32_t with, uint32_t mask = kAllLanes) {
  return __shfl_xor_sync(mask, value, static_cast<int>(with));
}
// Bit i of the result is the value that lane i passed.
QCTS_DEVICE uint32_t ballot(bool value, uint32_t mask = kAllLanes) { return __ballot_sync(mask, value); }
#else
QCTS_DEVICE void sync_block() { simt::sync_block(); }
QCTS_DEVICE void sync_warp(uint32_t mask = kAllLanes) { simt::sync_warp(mask); }
QCTS_DEVICE uint32_t shuffle(uint32_t value, uint32_t from, uint32_t mask = kAllLanes) {
  return simt::shuffle(mask, value, from);
}
QCTS_DEVICE uint32_t shuffle_xor(uint32_t value, uint32_t with, uint32_t mask = kAllLanes) {
  return simt::shuffle(mask, value, lane_index() ^ with);
}
QCTS_DEVICE uint32_t ballot(bool value, uint32_t mask = kAllLanes) { return simt::ballot(mask, value); }
#endif

// Numbers.
// The operators + - * / of float round to nearest even and keep subnormals, because kernels are compiled
// without contraction and without fast division. fmaf, fabsf and nearbyintf are those of math.h, and so are
// fmaxf and fminf. If one operand of fmaxf or fminf is NaN, quiet or signalling, they return the other one.
// They take -0 for less than +0.

QCTS_DEVICE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
QCTS_DEVICE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
QCTS_DEVICE float shuffle_xor(float value, uint32_t with, uint32_t mask = kAllLanes) {
  return float_of(shuffle_xor(bits_of(value), with, mask));
}
QCTS_DEVICE float bf16_to_f32(uint16_t value) { return float_of(static_cast<uint32_t>(value) << 16); }

#if defined(__CUDACC__)
QCTS_DEVICE float f16_to_f32(uint16_t value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value));
  return result;
}
// Rounds to nearest even. A NaN becomes 0x7FFF.
QCTS_DEVICE uint16_t f32_to_f16(float value) {
  uint16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
}
QCTS_DEVICE uint16_t f32_to_bf16(float value) {
  uint16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
}
// Puts two numbers into a word, the first in the lower half.
QCTS_DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
QCTS_DEVICE uint32_t pack_f16(float low, float high) {
  uint32_t result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
// Returns a * b + c for the two numbers in each word, rounded once.
QCTS_DEVICE uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
QCTS_DEVICE uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
// Byte i of the result is byte (selector >> 4 * i & 7) of a (bytes 0 .. 3) and b (bytes 4 .. 7).
QCTS_DEVICE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  return __byte_perm(a, b, selector);
}
// Returns (a & b) | c in one instruction.
QCTS_DEVICE uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
// Returns (a & b) ^ c in one instruction.
QCTS_DEVICE uint32_t and_xor(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
// Returns sum + the dot product of four signed bytes, modulo 2^32.
QCTS_DEVICE int32_t dot_s8(uint32_t a, uint32_t b, int32_t sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}
#else
QCTS_DEVICE float f16_to_f32(uint16_t value) { return simt::f16_to_f32(value); }
QCTS_DEVICE uint16_t f32_to_f16(float value) { return simt::f32_to_f16(value); }
QCTS_DEVICE uint16_t f32_to_bf16(float value) { return simt::f32_to_bf16(value); }
QCTS_DEVICE uint32_t pack_bf16(float low, float high) {
  return simt::f32_to_bf16(low) | static_cast<uint32_t>(simt::f32_to_bf16(high)) << 16;
}
QCTS_DEVICE uint32_t pack_f16(float low, float high) {
  return simt::f32_to_f16(low) | static_cast<uint32_t>(simt::f32_to_f16(high)) << 16;
}
QCTS_DEVICE uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) { return simt::fma_bf16x2(a, b, c); }
QCTS_DEVICE uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c) { return simt::fma_f16x2(a, b, c); }
QCTS_DEVICE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = a | static_cast<uint64_t>(b) << 32;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
  return result;
}
QCTS_DEVICE uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }
QCTS_DEVICE uint32_t and_xor(uint32_t a, uint32_t b, uint32_t c) { return (a & b) ^ c; }
QCTS_DEVICE int32_t dot_s8(uint32_t a, uint32_t b, int32_t sum) {
  auto wrapping = static_cast<uint32_t>(sum);
  for (int i = 0; i < 32; i += 8)
    wrapping += static_cast<uint32_t>(static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i));
  return static_cast<int32_t>(wrapping);
}
// If an operand is a signalling NaN, the functions of math.h may return a quiet NaN, but a GPU returns the
// other number. For two zeros they may return either, but on a GPU -0 is the smaller one.
QCTS_DEVICE float fmaxf(float a, float b) {
  if (a == b) return float_of(bits_of(a) & bits_of(b));
  return a != a ? b : b != b ? a : __builtin_fmaxf(a, b);
}
QCTS_DEVICE float fminf(float a, float b) {
  if (a == b) return float_of(bits_of(a) | bits_of(b));
  return a != a ? b : b != b ? a : __builtin_fminf(a, b);
}
#endif

}  // namespace
}  // namespace qcts::device
