// Half a byte in, two or four out: kernels/avx2/int4_dequantize.h. Scale and zero of a group lie together.
#include "kernels/avx2/int4_dequantize.h"

namespace {

using namespace qcts::avx2;

template <uint32_t kOfDtype>
struct TinygemmParams {
  static constexpr uint32_t kDtype = kOfDtype;
  static constexpr bool kHighFirst = true, kPairs = kDtype == QCTS_BF16;
  static constexpr int kLower = -8, kUpper = 0, kBytes = kDtype == QCTS_F32 ? 8 : 4;

  explicit TinygemmParams(const qcts_problem& p) : plane(qcts::in_plane(p, "scale_and_zero")), n_count(p.n) {}
  void load(const Tile& tile) { load_tile(tile, plane, n_count, &pairs); }
  Table table(int64_t row, int64_t g) const {
    return int4_table<true, kDtype>(one_element(kDtype, pairs.at(row, g), 0),
                                    one_element(kDtype, pairs.at(row, g), 1));
  }
  EightGroups eight(int64_t row, int64_t g) const {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs.at(row, g)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(both, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))))};
  }
  static uint32_t plain(const EightGroups& groups) { return plain_groups(groups); }

  const void* plane;
  int64_t n_count;
  ParameterTile<kBytes> pairs;
};

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_tinygemm_avx2, dequantize_int4<TinygemmParams>>(
        QCTS_OP_DEQUANTIZE, "int4_tinygemm", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
