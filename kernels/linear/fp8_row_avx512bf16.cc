// y = scale * sum(x * value(code)) + bias, one row one scale. m = 1 reads one byte a weight about as fast as
// memory brings it: 32 of them cost 13 half-vector operations on three units (kernels/avx512bf16_codes.h).
// The scale of a column that holds a NaN is NaN, which is what every sum over that column is anyway. Layout
// of a block of 64 columns: the codes in pairs, then 64 scales (float32).
#include "kernels/avx512bf16_codes.h"

namespace {

using namespace qcts::avx512bf16;

struct Fp8Row {
  static constexpr int kStep = kPairStep, kBytesPerK = kPairBytesPerK;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int) {
    return e4m3_pairs(at, vector);
  }
  [[gnu::always_inline]] static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale,
                                            __m512*) {
    *scale = _mm512_loadu_ps(at + vector * 4 * kLanes);
  }
  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Fp8Row>(frame, block, first_m, rows);
  }

  static void prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
    const auto* scale = static_cast<const char*>(qcts::in_plane(p, "scale"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* scales = out + layout.padded_group * kBytesPerK;
    std::memcpy(scales, scale + 4 * first_n, static_cast<size_t>(4 * columns));
    constexpr uint32_t kNan = 0x7FC00000;
    for (int64_t k0 = 0; k0 < p.k; k0 += 128)
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t k = k0; k < p.k && k < k0 + 128; ++k)
          if (put_e4m3(out, c, k, qdata[(first_n + c) * p.k + k])) std::memcpy(scales + 4 * c, &kNan, 4);
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_row_avx512bf16 =
    linear_of<qcts_kernel_linear_fp8_row_avx512bf16, Fp8Row>(
        "fp8_row",
        "64 columns a block, made bfloat16 in registers for m <= 6, to a panel above; bound by reading "
        "weights, then "
        "by the multiplications");
