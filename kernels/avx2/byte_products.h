// SPDX-License-Identifier: BSD-3-Clause
// Products of bytes with AVX2, as assembly: the compiler moves the intrinsics apart and runs out of
// registers.
#pragma once

#include "kernels/avx2/elements.h"

namespace qcts::avx2 {
namespace {

// Loads again for each use: when the compiler hoisted the loads of several rows, sums were spilled to memory.
[[gnu::always_inline]] inline __m256i broadcast_four(const int8_t* x) {
  __m256i four;
  asm volatile("vpbroadcastd %1, %0" : "=x"(four) : "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
  return four;
}

// Returns sum + codes * x, neighbours added, in 16 bits, and keeps this order: left to itself, the compiler
// multiplied everything first and kept the products in memory.
[[gnu::always_inline]] inline __m256i add_pairs(__m256i sum, __m256i codes, __m256i x) {
  __m256i products;
  asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(products) : "x"(codes), "x"(x));
  return sum;
}

}  // namespace
}  // namespace qcts::avx2
