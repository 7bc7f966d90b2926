// SPDX-License-Identifier: BSD-3-Clause
// Products of bytes with AVX2, where a compiler that is free to move them runs out of registers.
#pragma once

#include "kernels/avx2/elements.h"

namespace qcts::avx2 {
namespace {

// Loaded for each use: hoisted by the compiler, those of several rows drove sums into memory.
[[gnu::always_inline]] inline __m256i broadcast_four(const int8_t* x) {
  __m256i four;
  asm volatile("vpbroadcastd %1, %0" : "=x"(four) : "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
  return four;
}

// sum + the products of codes and x, neighbours together, in 16 bits, in the order of the source: free to
// move them, the compiler multiplied all first and kept the products in memory.
[[gnu::always_inline]] inline __m256i add_pairs(__m256i sum, __m256i codes, __m256i x) {
  __m256i products;
  asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(products) : "x"(codes), "x"(x));
  return sum;
}

}  // namespace
}  // namespace qcts::avx2
