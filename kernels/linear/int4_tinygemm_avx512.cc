// y = sum over groups of scale * sum(x * (q - 8)) + zero * sum(x), plus bias.
// m <= 4 is bound by decoding: sixteen weights cost a shift, a permutation and a fused multiply-add, three
// instructions for two ports, and half a byte each. So scale and zero are kept out of the inner loop: they
// act on the two sums of a group, and the sums of x are shared by all columns. A 32-bit lane holds eight k of
// one column; the permutation reads only the four low bits of a lane, so it is mask, conversion and
// subtraction of 8 in one. Layout of a block of 64 columns: for each group, for each 8 k, 64 words (256
// bytes), then the group's 64 scales and 64 zeros in the weight's dtype.
#include "kernels/avx512_linear.h"

namespace {

using namespace qcts::avx512;

struct Scheme {
  static constexpr int kStep = 8, kBytesPerK = kColumns / 2;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = true;

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t scale_bytes(const qcts_problem& p) { return 2 * kColumns * qcts::dtype_bytes(p.w_dtype); }

  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int step) {
    const __m512 values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(_mm512_loadu_si512(at + vector * 4 * kLanes), 4 * step),
                                 values);
  }

  static void scales(const qcts_problem& p, const uint8_t* at, int vector, __m512* scale, __m512* zero) {
    const int64_t bytes = qcts::dtype_bytes(p.w_dtype);
    *scale = load16(p.w_dtype, at + vector * kLanes * bytes);
    *zero = load16(p.w_dtype, at + (kColumns + vector * kLanes) * bytes);
  }

  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Scheme>(frame, block, first_m, rows);
  }

  // The words of one group of one column.
  static void prepare_codes(const uint8_t* pairs, int64_t group, int64_t column, uint8_t* out) {
    for (int64_t k = 0; k < group; k += kStep) {
      uint32_t word = 0;
      for (int i = 0; i < kStep; i += 2) {
        const uint32_t pair = pairs[(k + i) / 2];
        word |= (pair >> 4) << 4 * i | (pair & 15) << 4 * (i + 1);
      }
      std::memcpy(out + k * kBytesPerK + 4 * column, &word, 4);
    }
  }

  static void prepare_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::plane_data(p.planes, p.n_planes, "qdata"));
    const auto* pairs = static_cast<const char*>(qcts::plane_data(p.planes, p.n_planes, "scale_and_zero"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    const size_t bytes = qcts::dtype_bytes(p.w_dtype);
    for (int64_t g = 0; g < p.k / p.group; ++g) {
      uint8_t* codes = out + g * group_bytes<Scheme>(p);
      uint8_t* scales = codes + p.group * kBytesPerK;
      for (int64_t c = 0; c < columns; ++c) {
        prepare_codes(qdata + ((first_n + c) * p.k + g * p.group) / 2, p.group, c, codes);
        const char* pair = pairs + static_cast<size_t>(2 * (g * p.n + first_n + c)) * bytes;
        std::memcpy(scales + static_cast<size_t>(c) * bytes, pair, bytes);
        std::memcpy(scales + static_cast<size_t>(kColumns + c) * bytes, pair + bytes, bytes);
      }
    }
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx512 =
    linear_of<qcts_kernel_linear_int4_tinygemm_avx512, Scheme>(
        "int4_tinygemm",
        "64 columns a block, nibbles looked up in registers for m <= 4, to a panel above; bound by "
        "decoding, then by fma");
