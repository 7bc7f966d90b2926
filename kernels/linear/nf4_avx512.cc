// SPDX-License-Identifier: BSD-3-Clause
// y = sum over blocks of 64 of scaler * sum(x * table[code]), plus bias. The table is the file's: as sixteen
// floats it fills a vector, whatever its dtype, and codes are looked up in it (kernels/avx512/nibble_lut.h).
// Packing computes the scalers from the two levels that the file holds, each step rounded to the weight's
// dtype. A block of 64 columns holds the table, then for each 64 k the words and 64 scalers in the weight's
// dtype.
#include "kernels/avx512/nibble_lut.h"

namespace {

using namespace qcts::avx512;

constexpr int kNf4BlockK = 64;

struct Nf4 {
  static constexpr int kStep = kWordStep, kBytesPerK = kWordBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem&) { return kNf4BlockK; }
  static int64_t scale_bytes(const qcts_problem& p) { return kColumns * qcts::dtype_bytes(p.w_dtype); }
  static float factor(const uint8_t*) { return 1; }
  static __m512 decode(const uint8_t* header, const uint8_t* at, int vector, int i) {
    return look_up_words(header, at, vector, i);
  }
  static void scales(const qcts_problem& p, const uint8_t* at, int vector, __m512* scale, __m512*) {
    const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
    *scale = load16(p.w_dtype, at + vector * kLanes * bytes);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Nf4>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    _mm512_storeu_ps(out, load16(p.w_dtype, qcts::in_plane(p, "nf4")));
    qcts::put_blocks(qcts::Nf4Planes(p), first_n, group_bytes<Nf4>(p), put_nibbles, out + kHeaderBytes);
  }
};

qcts_status nf4_supports(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = qcts::check_problem(qcts_kernel_linear_nf4_avx512, p, why, why_size);
  if (status == QCTS_OK && p->k % kNf4BlockK != 0)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size,
                        "k = %lld: linear needs blocks of 64 that do not cross rows",
                        static_cast<long long>(p->k));
  return status;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_nf4_avx512 = linear_of<qcts_kernel_linear_nf4_avx512, Nf4>(
    "nf4",
    "64 columns per block, the file's table looked up in registers up to m = 4, else to a panel; bound by "
    "decoding, then by fma",
    nf4_supports);
