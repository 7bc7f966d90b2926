// SPDX-License-Identifier: BSD-3-Clause
// mma.sync on the fragments of a warp (PTX ISA 8.7, section 9.7.14.5.8). a has 16 rows and b has 8 columns,
// each with 32 bytes of k.
#pragma once

#include <cstdint>

namespace qcts::simt {

template <class Sum>
struct Fragment {
  Sum* d;             // 4 sums
  const uint32_t* a;  // 4 words
  const uint32_t* b;  // 2 words
};
template <class Sum>
struct Fragments {
  Fragment<Sum> of[32];  // by lane
};

void multiply_bf16_tile(const Fragments<float>& warp);
void multiply_f16_tile(const Fragments<float>& warp);
void multiply_s8_tile(const Fragments<int32_t>& warp);

}  // namespace qcts::simt
