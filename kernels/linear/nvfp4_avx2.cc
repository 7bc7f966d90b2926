// SPDX-License-Identifier: BSD-3-Clause
// y = s * sum over blocks of 16 of scale * sum(x * element), plus bias, where s is the scale of the whole
// weight, or 1. Elements are looked up (kernels/avx2/nibbles.h), which is the bound at m = 1. The e4m3 scales
// are stored as bfloat16, which holds them: a block of 16 k is short, and widening bfloat16 takes one shift
// instead of four operations, for 10 bytes of a column and block instead of 9. s acts on the finished sum and
// rounds once, together with the bias. A block of 64 columns holds s, then for each 16 k the codes and 64
// scales.
#include "kernels/avx2/nibbles.h"

namespace {

using namespace qcts::avx2;

// bfloat16 of e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; low bytes, then high bytes.
alignas(32) constexpr uint8_t kNvfp4Table[32] = {
    0x00, 0x00, 0x80, 0xC0, 0x00, 0x40, 0x80, 0xC0, 0x00, 0x00, 0x80, 0xC0, 0x00, 0x40, 0x80, 0xC0,
    0x00, 0x3F, 0x3F, 0x3F, 0x40, 0x40, 0x40, 0x40, 0x80, 0xBF, 0xBF, 0xBF, 0xC0, 0xC0, 0xC0, 0xC0};

struct Nvfp4 {
  static constexpr int kBlockK = 16;
  static constexpr int kStep = kNibbleStep, kWide = kNibbleWide, kBytesPerK = kNibbleBytesPerK,
                       kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 64;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem&) { return kBlockK; }
  static int64_t scale_bytes(const qcts_problem&) { return 2 * kColumns; }
  static float factor(const uint8_t* header) {
    float whole;
    std::memcpy(&whole, header, 4);
    return whole;
  }
  static void scales(const qcts_problem&, const uint8_t* at, float* scale, float*) {
    widen_scales(QCTS_BF16, at, scale);
  }
  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int i,
                                            __m256 (&out)[kWide]) {
    look_up_nibbles(nibble_table(kNvfp4Table), at, vector, i, out);
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

const qcts_kernel qcts_kernel_linear_nvfp4_avx2 = linear_of<qcts_kernel_linear_nvfp4_avx2, Nvfp4>(
    "nvfp4",
    "64 columns per block, elements looked up in registers up to m = 4, else to a panel; bound by decoding, "
    "then by fma",
    qcts::supports_problem<qcts_kernel_linear_nvfp4_avx2>);
