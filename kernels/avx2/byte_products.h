// SPDX-License-Identifier: BSD-3-Clause
// Multiplies bytes with AVX2 in assembly. The compiler moves intrinsics apart and runs out of registers.
#pragma once

#include "kernels/avx2/elements.h"

namespace qcts::avx2 {
namespace {

// Loads x again for each use. When the compiler hoisted the loads of several rows, it spilled sums to memory.
[[gnu::always_inline]] inline __m256i broadcast_four(const int8_t* x) {
  __m256i four;
  asm volatile("vpbroadcastd %1, %0" : "=x"(four) : "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
  return four;
}

// Returns sum + codes * x in 16 bits, with neighbouring products added.
// The assembly fixes the order of the two instructions.
// The compiler's own order computed all products first and kept them in memory.
[[gnu::always_inline]] inline __m256i add_pairs(__m256i sum, __m256i codes, __m256i x) {
  __m256i products;
  asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(products) : "x"(codes), "x"(x));
  return sum;
}

}  // namespace
}  // namespace qcts::avx2
