// SPDX-License-Identifier: BSD-3-Clause
// mma.sync on the fragments of a warp (PTX ISA 8.7, section 9.7.14.5.8): 16 rows of a, 8 columns of b, 32
// bytes of k a row.
#pragma once

#include <cstdint>

namespace qcts::simt {

template <class Sum>
struct Fragment {
  Sum* d;             // 4
  const uint32_t* a;  // 4
  const uint32_t* b;  // 2
};
template <class Sum>
struct Fragments {
  Fragment<Sum> of[32];  // by lane
};

void multiply_bf16_tile(const Fragments<float>& warp);
void multiply_f16_tile(const Fragments<float>& warp);
void multiply_s8_tile(const Fragments<int32_t>& warp);

}  // namespace qcts::simt
