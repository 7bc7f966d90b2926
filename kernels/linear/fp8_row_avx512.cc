// y = scale * sum(x * value(code)) + bias, one row one scale.
// m <= 4 is bound by reading one byte a weight, if decoding keeps up: a widening load, a shift, a mask, a
// multiplication and a fused multiply-add for sixteen. A code's sign and seven low bits, moved to a float's,
// are its value times 2^-120, subnormals included. NaN codes would cost three operations more; instead
// `prepare` turns the scale of a column that holds one into NaN, which is what every sum over that column is
// anyway. Layout of a block of 64 columns: for each k one cache line, byte c of it column c, then 64 scales
// (float32).
#include "kernels/avx512_linear.h"

namespace {

using namespace qcts::avx512;

struct Scheme {
  static constexpr int kStep = 1, kBytesPerK = kColumns;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }

  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int) {
    const __m512i wide =
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + vector * kLanes)));
    const __m512i bits =
        _mm512_and_si512(_mm512_slli_epi32(wide, 20), _mm512_set1_epi32(static_cast<int>(0x87F00000u)));
    return _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p120f));
  }

  static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale, __m512*) {
    *scale = load16(QCTS_F32, at + vector * 4 * kLanes);
  }

  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Scheme>(frame, block, first_m, rows);
  }

  static void prepare_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::plane_data(p.planes, p.n_planes, "qdata"));
    const auto* scale = static_cast<const char*>(qcts::plane_data(p.planes, p.n_planes, "scale"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* scales = out + p.k * kColumns;
    std::memcpy(scales, scale + 4 * first_n, static_cast<size_t>(4 * columns));
    constexpr uint32_t kNan = 0x7FC00000;
    for (int64_t k0 = 0; k0 < p.k; k0 += kChunk)
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t k = k0; k < p.k && k < k0 + kChunk; ++k) {
          const uint8_t code = qdata[(first_n + c) * p.k + k];
          out[k * kColumns + c] = code;
          if ((code & 0x7F) == 0x7F) std::memcpy(scales + 4 * c, &kNan, 4);
        }
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_row_avx512 = linear_of<qcts_kernel_linear_fp8_row_avx512, Scheme>(
    "fp8_row",
    "64 columns a block, decoded in registers for m <= 4, to a panel above; bound by reading weights, "
    "then by fma");
