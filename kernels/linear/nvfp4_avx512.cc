// SPDX-License-Identifier: BSD-3-Clause
// y = s * sum over blocks of 16 of scale * sum(x * element), plus bias, where s is the scale of the whole
// weight, or 1. Elements are looked up (kernels/avx512/nibble_lut.h). The e4m3 scales are stored as bfloat16,
// which holds them: a block of 16 k is short, and widening bfloat16 takes one shift, for 10 bytes of a column
// and block instead of 9. s acts on the finished sum and rounds once, together with the bias. A block of 64
// columns holds s, then for each 16 k the words and 64 scales.
#include "kernels/avx512/nibble_lut.h"
#include "kernels/avx512/scales.h"

namespace {

using namespace qcts::avx512;

struct Nvfp4 : NarrowScales {
  static constexpr int kBlockK = 16;
  static constexpr int kStep = kWordStep, kBytesPerK = kWordBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;

  static int64_t group(const qcts_problem&) { return kBlockK; }
  static float factor(const uint8_t* header) {
    float whole;
    std::memcpy(&whole, header, 4);
    return whole;
  }
  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int i) {
    return look_up_words(kE2m1Floats, at, vector, i);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Nvfp4>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const qcts::Nvfp4Planes planes(p);
    planes.put_whole_scale(out);
    qcts::put_blocks(planes, first_n, group_bytes<Nvfp4>(p), put_nibbles, out + kHeaderBytes);
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_nvfp4_avx512 = linear_of<qcts_kernel_linear_nvfp4_avx512, Nvfp4>(
    "nvfp4",
    "64 columns per block, elements looked up in registers up to m = 4, else to a panel; bound by decoding, "
    "then by fma");
