// SPDX-License-Identifier: BSD-3-Clause
// Products of a group of four warps (wgmma; compute capability 9.0a; PTX ISA 8.7, section 9.7.15): d += a * b
// for a of 64 rows and b of N columns, with 32 bytes of k per row. All 128 threads call each function, and
// the group begins at a multiple of four warps. A product is under way until its commit group has been waited
// for. Until then, its operands in shared memory must stay, and d must not be touched, not even read.
//
//   wgmma_fence(); wgmma_bf16(d, a, b); ... wgmma_commit(); wgmma_wait<0>();
//
// A wgmma_fence() comes first and after each wait, because d may have been touched. Thread t is lane
// l = t % 32 of warp w = t / 32. Its d[4 * j] and d[4 * j + 1] are columns 8 * j + 2 * (l % 4) and the next
// one of row 16 * w + l / 4. Its d[4 * j + 2] and d[4 * j + 3] are the same columns of the row eight below. N
// is twice the length of d: 16, 32, 64 or 128.
//
// Operands in shared memory have rows of 128 bytes along k, in the order of copy_box(). A step uses 32 of
// these bytes, and its descriptor is matrix_descriptor(row 0) + 2 * step. Operand a may come in registers
// instead, as in mma.sync of 16 rows (kernels/cuda/matrix.h).
#pragma once

#include "kernels/cuda/barrier.h"

namespace qcts::device {
namespace {

QCTS_DEVICE uint64_t matrix_descriptor(const void* shared) {
#if defined(__CUDACC__)
  // The address and the distance of 8 rows are in units of 16 bytes. The swizzle is that of 128 bytes.
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kStrideOf8Rows = uint64_t{1024} >> 4;
  return kSwizzle128 | kStrideOf8Rows << 32 | uint64_t{1} << 16 | (shared_address(shared) >> 4 & 0x3FFF);
#else
  return simt::matrix_descriptor(shared);
#endif
}

QCTS_DEVICE void wgmma_fence() {
#if defined(__CUDACC__)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  simt::wgmma_fence();
#endif
}
QCTS_DEVICE void wgmma_commit() {
#if defined(__CUDACC__)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  simt::wgmma_commit();
#endif
}
// Waits until at most kUnfinished groups are under way.
template <int kUnfinished>
QCTS_DEVICE void wgmma_wait() {
#if defined(__CUDACC__)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kUnfinished) : "memory");
#else
  simt::wgmma_wait(kUnfinished);
#endif
}

#if defined(__CUDACC__)
// The registers of d, in the text of an instruction and as its operands.
// clang-format off
#define QCTS_D16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define QCTS_OF_D16(mark) \
  mark(d[0]), mark(d[1]), mark(d[2]), mark(d[3]), mark(d[4]), mark(d[5]), mark(d[6]), mark(d[7])
#define QCTS_D32 QCTS_D16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define QCTS_OF_D32(mark) \
  QCTS_OF_D16(mark), mark(d[8]), mark(d[9]), mark(d[10]), mark(d[11]), mark(d[12]), mark(d[13]), mark(d[14]), \
  mark(d[15])
#define QCTS_D64 QCTS_D32 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define QCTS_OF_D64(mark) \
  QCTS_OF_D32(mark), mark(d[16]), mark(d[17]), mark(d[18]), mark(d[19]), mark(d[20]), mark(d[21]), mark(d[22]), \
  mark(d[23]), mark(d[24]), mark(d[25]), mark(d[26]), mark(d[27]), mark(d[28]), mark(d[29]), mark(d[30]), \
  mark(d[31])
#define QCTS_D128 QCTS_D64 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define QCTS_OF_D128(mark) \
  QCTS_OF_D64(mark), mark(d[32]), mark(d[33]), mark(d[34]), mark(d[35]), mark(d[36]), mark(d[37]), mark(d[38]), \
  mark(d[39]), mark(d[40]), mark(d[41]), mark(d[42]), mark(d[43]), mark(d[44]), mark(d[45]), mark(d[46]), \
  mark(d[47]), mark(d[48]), mark(d[49]), mark(d[50]), mark(d[51]), mark(d[52]), mark(d[53]), mark(d[54]), \
  mark(d[55]), mark(d[56]), mark(d[57]), mark(d[58]), mark(d[59]), mark(d[60]), mark(d[61]), mark(d[62]), \
  mark(d[63])
#define QCTS_FLOAT(x) "+f"(x)
#define QCTS_INT(x) "+r"(x)
#define QCTS_ALWAYS "{\n.reg .pred always;\nsetp.ne.b32 always, 1, 0;\nwgmma.mma_async.sync.aligned.m64n"
// The operands after d have the numbers i0 to i4. s_tail and r_tail are the immediate operands if a is in
// shared memory or in registers: the signs, and whether a and b are transposed.
#define QCTS_WGMMA(name, Sum, mark, N, types, s_tail, r_tail, i0, i1, i2, i3, i4) \
  QCTS_DEVICE void name(Sum(&d)[N / 2], uint64_t a, uint64_t b) { \
    asm volatile(QCTS_ALWAYS #N types " {" QCTS_D##N "}, %" #i0 ", %" #i1 ", always" s_tail ";\n}" \
                 : QCTS_OF_D##N(mark) \
                 : "l"(a), "l"(b)); \
  } \
  QCTS_DEVICE void name(Sum(&d)[N / 2], const uint32_t(&a)[4], uint64_t b) { \
    asm volatile(QCTS_ALWAYS #N types " {" QCTS_D##N "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", always" r_tail \
                 ";\n}" \
                 : QCTS_OF_D##N(mark) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)); \
  }
#define QCTS_WGMMA_TYPES(N, i0, i1, i2, i3, i4) \
  QCTS_WGMMA(wgmma_bf16, float, QCTS_FLOAT, N, "k16.f32.bf16.bf16", ", 1, 1, 0, 0", ", 1, 1, 0", i0, i1, i2, i3, i4) \
  QCTS_WGMMA(wgmma_e4m3, float, QCTS_FLOAT, N, "k32.f32.e4m3.e4m3", ", 1, 1", ", 1, 1", i0, i1, i2, i3, i4) \
  QCTS_WGMMA(wgmma_s8, int32_t, QCTS_INT, N, "k32.s32.s8.s8", "", "", i0, i1, i2, i3, i4)
QCTS_WGMMA_TYPES(16, 8, 9, 10, 11, 12)
QCTS_WGMMA_TYPES(32, 16, 17, 18, 19, 20)
QCTS_WGMMA_TYPES(64, 32, 33, 34, 35, 36)
QCTS_WGMMA_TYPES(128, 64, 65, 66, 67, 68)
#undef QCTS_WGMMA_TYPES
#undef QCTS_WGMMA
#undef QCTS_ALWAYS
#undef QCTS_INT
#undef QCTS_FLOAT
#undef QCTS_OF_D128
#undef QCTS_OF_D64
#undef QCTS_OF_D32
#undef QCTS_OF_D16
#undef QCTS_D128
#undef QCTS_D64
#undef QCTS_D32
#undef QCTS_D16
// clang-format on
#else
// Defines a product of type `type`, with a in shared memory or in registers.
#define QCTS_WGMMA(name, Sum, type)                                          \
  template <int kSums>                                                       \
  QCTS_DEVICE void name(Sum(&d)[kSums], uint64_t a, uint64_t b) {            \
    simt::wgmma(d, {simt::Wgmma::type, 2 * kSums, nullptr, a, b});           \
  }                                                                          \
  template <int kSums>                                                       \
  QCTS_DEVICE void name(Sum(&d)[kSums], const uint32_t(&a)[4], uint64_t b) { \
    simt::wgmma(d, {simt::Wgmma::type, 2 * kSums, a, 0, b});                 \
  }
QCTS_WGMMA(wgmma_bf16, float, bf16)
QCTS_WGMMA(wgmma_e4m3, float, e4m3)
QCTS_WGMMA(wgmma_s8, int32_t, s8)
#undef QCTS_WGMMA
#endif

}  // namespace
}  // namespace qcts::device
