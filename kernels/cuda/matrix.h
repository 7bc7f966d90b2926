// SPDX-License-Identifier: BSD-3-Clause
// Matrix instructions of a warp (ldmatrix and mma.sync, PTX ISA 8.7, sections 9.7.14.5.8 and 9.7.14.5.15).
// All lanes take part.
//
// In a fragment, let row = lane / 4 and pair = lane % 4. Then `d[0]` and `d[1]` are columns 2 * pair and
// 2 * pair + 1 of row `row`, and `d[2]` and `d[3]` are the same columns of row + 8. A word of a or b holds
// consecutive k.
//
// Tensor cores do not round as fused multiply-adds do. kernels/emulated/simt_sums.h has the rule.
#pragma once

#include "kernels/cuda/device.h"

namespace qcts::device {
namespace {

// Loads kCount matrices of 8 rows of 16 bytes. Lane 8 * i + j passes the address of row j of matrix i in
// shared memory, a multiple of 16. words[i] becomes word lane % 4 of row lane / 4 of matrix i. With
// kTransposed, it becomes the 16-bit elements 2 * (lane % 4) and the next one of column lane / 4.
template <int kCount, bool kTransposed = false>
QCTS_DEVICE void load_matrices(uint32_t (&words)[kCount], const void* row) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4);
#if defined(__CUDACC__)
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kCount == 1 && !kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(words[0])
                 : "r"(from)
                 : "memory");
  else if constexpr (kCount == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(words[0])
                 : "r"(from)
                 : "memory");
  else if constexpr (kCount == 2 && !kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "r"(from)
                 : "memory");
  else if constexpr (kCount == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "r"(from)
                 : "memory");
  else if constexpr (!kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(from)
                 : "memory");
#else
  simt::load_matrices(words, row, kCount, kTransposed);
#endif
}

#if defined(__CUDACC__)
#define QCTS_MMA_F32(name, shape)                                                                    \
  QCTS_DEVICE void name(float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {                \
    asm("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                             \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                         \
  }
#else
#define QCTS_MMA_F32(name, shape) \
  QCTS_DEVICE void name(float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) { simt::name(d, a, b); }
#endif
// Computes d += a * b for a of 16 rows, b of 8 columns, and 16 k. a[0] and a[1] hold k = 2 * pair and the
// next one, of row `row` and of row + 8. a[2] and a[3] hold the same for k + 8. b[0] holds k = 2 * pair and
// the next one of column lane / 4. b[1] holds the same for k + 8.
QCTS_MMA_F32(multiply_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
QCTS_MMA_F32(multiply_f16, "m16n8k16.row.col.f32.f16.f16.f32")
#undef QCTS_MMA_F32

// Does the same with signed bytes and 32 k. A word holds k = 4 * pair to 4 * pair + 3, or these + 16. Sums
// wrap around.
QCTS_DEVICE void multiply_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(__CUDACC__)
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simt::multiply_s8(d, a, b);
#endif
}

}  // namespace
}  // namespace qcts::device
