// SPDX-License-Identifier: BSD-3-Clause
// y = sum over blocks of 64 of scaler * sum(x * table[code]), plus bias. The table is the file's, in the
// weight's dtype. A bfloat16 value is looked up as its two bytes (kernels/avx2/nibbles.h), float16 and
// float32 as the four bytes of a float, which costs half as much again. The lookups are the bound at m = 1.
// Packing computes the scalers from the two levels that the file holds, each step rounded to the weight's
// dtype. A block of 64 columns holds the table, then for each 64 k the codes and 64 scalers.
#include "kernels/avx2/nibbles.h"

namespace {

using namespace qcts::avx2;

constexpr int kNf4BlockK = 64;

float nf4_element(uint32_t dtype, const void* array, int64_t index) {
  return _mm256_cvtss_f32(
      load_some(dtype, static_cast<const char*>(array) + index * qcts::dtype_bytes(dtype), 1));
}

template <bool kWideTable>
struct Nf4 {
  static constexpr int kStep = kNibbleStep, kWide = kNibbleWide, kBytesPerK = kNibbleBytesPerK,
                       kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 64;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem&) { return kNf4BlockK; }
  static int64_t scale_bytes(const qcts_problem& p) { return kColumns * qcts::dtype_bytes(p.w_dtype); }
  static float factor(const uint8_t*) { return 1; }
  static void scales(const qcts_problem& p, const uint8_t* at, float* scale, float*) {
    widen_scales(p.w_dtype, at, scale);
  }
  [[gnu::always_inline]] static void decode(const uint8_t* header, const uint8_t* at, int vector, int i,
                                            __m256 (&out)[kWide]) {
    if (kWideTable) {
      look_up_floats(header, at, vector, i, out);
    } else {
      look_up_nibbles(nibble_table(header), at, vector, i, out);
    }
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Nf4>(call, block, first_m, rows);
  }

  static void put_table(const qcts_problem& p, uint8_t* header) {
    const void* table = qcts::in_plane(p, "nf4");
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, nf4_element(p.w_dtype, table, i));
      for (int byte = 0; byte < 4; ++byte)
        if (kWideTable || byte >= 2)
          header[16 * (kWideTable ? byte : byte - 2) + i] = static_cast<uint8_t>(bits >> 8 * byte);
    }
  }
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    put_table(p, out);
    qcts::put_blocks(qcts::Nf4Planes(p), first_n, group_bytes<Nf4>(p),
                     kWideTable ? put_wide_nibbles : put_nibbles, out + kHeaderBytes);
  }
};

qcts_status nf4_supports(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = qcts::check_problem(qcts_kernel_linear_nf4_avx2, p, why, why_size);
  if (status == QCTS_OK && p->k % kNf4BlockK != 0)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size,
                        "k = %lld: linear needs blocks of 64 that do not cross rows",
                        static_cast<long long>(p->k));
  return status;
}

template <bool kWideTable>
constexpr qcts_kernel kNf4Entry = linear_of<qcts_kernel_linear_nf4_avx2, Nf4<kWideTable>>(
    "nf4",
    "64 columns per block, the file's table looked up in registers up to m = 4, else to a panel; bound by "
    "decoding, then by fma",
    nf4_supports);

const qcts_kernel& nf4_entry(const qcts_problem& p) {
  return p.w_dtype == QCTS_BF16 ? kNf4Entry<false> : kNf4Entry<true>;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_nf4_avx2 = qcts::entry_by_member<nf4_entry>(kNf4Entry<false>);
