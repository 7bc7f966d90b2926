// SPDX-License-Identifier: BSD-3-Clause
// y = sum over blocks of 32 of 2^e * sum(x * element), plus bias.
//
// MXFP4 uses table lookups (kernels/avx2/nibbles.h), which are the bound at m = 1. MXFP8 and MXFP6 have one
// byte per element, which is moved to a float's place (kernels/avx2/float8.h); that is the bound at m = 1.
// Scales are stored as bfloat16, which holds every e8m0,
// including 2^-127 and NaN, and is widened by one shift. A block of 64 columns holds, for each 32 k, the
// codes, one cache line for each k or each 2 k, then 64 scales. If an element is an e4m3 NaN, the scale of
// its 32 becomes NaN, as kernels/avx2/fp8_linear.h does for a row.
#include "kernels/avx2/float8.h"
#include "kernels/avx2/nibbles.h"

namespace {

using namespace qcts::avx2;

// bfloat16 of e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; low bytes, then high bytes.
alignas(32) constexpr uint8_t kE2m1Table[32] = {
    0x00, 0x00, 0x80, 0xC0, 0x00, 0x40, 0x80, 0xC0, 0x00, 0x00, 0x80, 0xC0, 0x00, 0x40, 0x80, 0xC0,
    0x00, 0x3F, 0x3F, 0x3F, 0x40, 0x40, 0x40, 0x40, 0x80, 0xBF, 0xBF, 0xBF, 0xC0, 0xC0, 0xC0, 0xC0};

struct MxBlocks {
  static constexpr int kBlockK = 32;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;
  static int64_t group(const qcts_problem&) { return kBlockK; }
  static int64_t scale_bytes(const qcts_problem&) { return 2 * kColumns; }
  static float factor(const uint8_t*) { return 1; }
  static void scales(const qcts_problem&, const uint8_t* at, float* scale, float*) {
    widen_scales(QCTS_BF16, at, scale);
  }
};

struct Mxfp4 : MxBlocks {
  static constexpr int kStep = kNibbleStep, kWide = kNibbleWide, kBytesPerK = kNibbleBytesPerK,
                       kSumsAlone = 8;

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int i,
                                            __m256 (&out)[kWide]) {
    look_up_nibbles(nibble_table(kE2m1Table), at, vector, i, out);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Mxfp4>(call, block, first_m, rows);
  }
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    qcts::put_blocks(qcts::Mxfp4Planes(p), first_n, group_bytes<Mxfp4>(p), put_nibbles, out);
  }
};

template <Float8 kFormat>
struct MxBytes : MxBlocks {
  static constexpr int kStep = 1, kWide = 1, kBytesPerK = kColumns, kSumsAlone = 8;

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    out[0] = float8_for_linear<kFormat>(at + vector * kLanes);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<MxBytes>(call, block, first_m, rows);
  }
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto put = [](uint8_t* group, int64_t column, int64_t k, uint8_t code) {
      group[k * kColumns + column] = code;
      return kFormat == Float8::e4m3 && (code & 0x7F) == 0x7F;
    };
    qcts::put_mx_bytes(p, first_n, group_bytes<MxBytes>(p), put, out);
  }
};

constexpr const qcts_kernel& kMx = qcts_kernel_linear_mx_avx2;

template <class Scheme>
constexpr qcts_kernel kMxEntry = linear_of<kMx, Scheme>(
    "mx",
    "64 columns per block, elements looked up or moved into floats up to m = 4, else to "
    "a panel; bound by decoding, then by fma",
    qcts::supports_problem<kMx>);

const qcts_kernel& mx_entry(const qcts_problem& p) {
  const uint32_t element = qcts::scheme_params(p).element_dtype;
  if (element == QCTS_F4_E2M1_X2) return kMxEntry<Mxfp4>;
  if (element == QCTS_F6_E2M3) return kMxEntry<MxBytes<Float8::e2m3>>;
  if (element == QCTS_F6_E3M2) return kMxEntry<MxBytes<Float8::e3m2>>;
  if (element == QCTS_F8_E5M2) return kMxEntry<MxBytes<Float8::e5m2>>;
  return kMxEntry<MxBytes<Float8::e4m3>>;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_mx_avx2 = qcts::entry_by_member<mx_entry>(kMxEntry<Mxfp4>);
