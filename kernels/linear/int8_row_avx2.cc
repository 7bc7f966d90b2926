// y = scale * sum(x * (q - zero_point)) + bias, one row one scale.
// m <= 4 is bound by reading one byte a weight; eight of them cost a widening load, a conversion and a fused
// multiply-add, so a core decodes eight weights in about a cycle, more than its share of memory bandwidth
// brings. Layout of a block of 64 columns: 64 zero points (int32), then for each k one cache line, byte c of
// it column c, then 64 scales (float32).
#include "kernels/avx2_linear.h"

namespace {

using namespace qcts::avx2;

template <bool kZeroPoints>
struct Int8Row {
  static constexpr int kStep = 1, kWide = 1, kBytesPerK = kColumns, kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 4 * kColumns;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static void decode(const uint8_t* header, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    __m256i codes =
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + vector * kLanes)));
    if (kZeroPoints)
      codes = _mm256_sub_epi32(
          codes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(header + vector * 4 * kLanes)));
    out[0] = _mm256_cvtepi32_ps(codes);
  }

  static void scales(const qcts_problem&, const uint8_t* at, float* scale, float*) {
    std::memcpy(scale, at, 4 * kColumns);
  }

  // Symmetric weights, the usual ones, are spared the subtraction.
  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    const uint8_t* header = frame.prepared + block * block_bytes<Int8Row>(*frame.problem);
    __m256i any = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v)
      any =
          _mm256_or_si256(any, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(header + v * 4 * kLanes)));
    if (_mm256_testz_si256(any, any)) return multiply_block<Int8Row<false>>(frame, block, first_m, rows);
    multiply_block<Int8Row<true>>(frame, block, first_m, rows);
  }

  static void prepare_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const int8_t*>(qcts::in_plane(p, "qdata"));
    const auto* scale = static_cast<const char*>(qcts::in_plane(p, "scale"));
    const auto* zero_point = static_cast<const int8_t*>(qcts::in_plane(p, "zero_point"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* codes = out + kHeaderBytes;
    for (int64_t c = 0; c < columns; ++c) {
      const int32_t zero = zero_point[first_n + c];
      std::memcpy(out + 4 * c, &zero, 4);
    }
    transpose_bytes(reinterpret_cast<const uint8_t*>(qdata) + first_n * p.k, p.k, columns, p.k, codes);
    std::memcpy(codes + padded_k<Int8Row>(p) * kColumns, scale + 4 * first_n,
                static_cast<size_t>(4 * columns));
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_avx2 =
    linear_of<qcts_kernel_linear_int8_row_avx2, Int8Row<false>>(
        "int8_row",
        "64 columns a block, decoded in registers for m <= 4, to a panel above; bound by reading weights, "
        "then by "
        "fma",
        qcts::supports_problem<qcts_kernel_linear_int8_row_avx2>);
