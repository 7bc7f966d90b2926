// Half a byte in, two or four out: bound by writing the result. A block's 16 values are computed once, with
// the roundings of nf4_scalar.cc, and looked up. Blocks run through rows, so a row may begin and end inside
// one.
#include "kernels/avx2/table.h"

namespace {

using namespace qcts::avx2;

__m256 nf4_round(uint32_t dtype, __m256 eight) {
  return dtype == QCTS_F32   ? eight
         : dtype == QCTS_F16 ? _mm256_cvtph_ps(narrow8(dtype, eight))
                             : widen_bf16(narrow8(dtype, eight));
}

struct Nf4Planes {
  const uint8_t* pairs;
  const int8_t* scalers;
  const void* factors;
  float mean;
  alignas(32) float values[16];
};

// Scales of eight blocks, the first a multiple of eight: they share a factor. One at a time they would be a
// chain of 80 cycles for 64 elements.
[[gnu::always_inline]] inline void nf4_scales(const Nf4Planes& from, uint32_t dtype, int64_t first_block,
                                              float* scales) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from.scalers + first_block));
  const __m256 factor = _mm256_set1_ps(one_element(dtype, from.factors, first_block / 256));
  const __m256 centred =
      nf4_round(dtype, _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), factor));
  _mm256_storeu_ps(scales, nf4_round(dtype, _mm256_add_ps(centred, _mm256_set1_ps(from.mean))));
}

// Elements [index, end) of one block.
template <bool kWide>
[[gnu::always_inline]] inline void dequantize_nf4_part(const Nf4Planes& from, const Table& table,
                                                       int64_t index, int64_t end, char* to,
                                                       bool past_caches) {
  if (index % 2 != 0) {  // the low nibble of its byte
    const auto alone = static_cast<uint8_t>(from.pairs[index / 2] << 4);
    look_up_codes<true, kWide>(table, &alone, 1, to);
    ++index;
    to += kWide ? 4 : 2;
  }
  look_up_codes<true, kWide>(table, from.pairs + index / 2, end - index, to, past_caches);
}

template <bool kWide>
void dequantize_nf4_rows(const Nf4Planes& from, const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int64_t kBytes = kWide ? 4 : 2;
  const uint32_t dtype = kWide ? static_cast<uint32_t>(QCTS_F32) : p.w_dtype;
  const __m256 lower = _mm256_load_ps(from.values), upper = _mm256_load_ps(from.values + 8);
  const __m256 outer = _mm256_permute2f128_ps(lower, upper, 0x20),
               inner = _mm256_permute2f128_ps(lower, upper, 0x31);
  bool near = true;  // to 1
  for (const float value : from.values) near = near && __builtin_fabsf(value) < 0x1p20f;
  const bool past_caches = is_past_caches(p, 64) && p.k % 64 == 0;
  float scales[8];
  int64_t scales_of = -1;
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const int64_t begin = n * p.k, end = begin + p.k;
    for (int64_t index = begin; index < end;) {
      const int64_t block = index / 64;
      if (scales_of != block / 8) nf4_scales(from, dtype, block / 8 * 8, scales);
      scales_of = block / 8;
      const int64_t stop = 64 * block + 64 < end ? 64 * block + 64 : end;
      const float scale = scales[block % 8];
      const __m256 factor = _mm256_set1_ps(scale);
      const Table table = dtype == QCTS_BF16 && near && __builtin_fabsf(scale) < 0x1p100f
                              ? finite_bf16_table(_mm256_mul_ps(outer, factor), _mm256_mul_ps(inner, factor))
                              : table_of_products(dtype, from.values, scale);
      dequantize_nf4_part<kWide>(from, table, index, stop, row + (index - begin) * kBytes, past_caches);
      index = stop;
    }
  }
}

void dequantize_nf4(const qcts_problem& p, int64_t first, int64_t last) {
  Nf4Planes from = {static_cast<const uint8_t*>(qcts::in_plane(p, "quantized_data")),
                    static_cast<const int8_t*>(qcts::in_plane(p, "quantized_scalers")),
                    qcts::in_plane(p, "quantization_factor"),
                    one_element(p.w_dtype, qcts::in_plane(p, "scaler_mean"), 0),
                    {}};
  for (int i = 0; i < 16; ++i) from.values[i] = one_element(p.w_dtype, qcts::in_plane(p, "nf4"), i);
  p.w_dtype == QCTS_F32 ? dequantize_nf4_rows<true>(from, p, first, last)
                        : dequantize_nf4_rows<false>(from, p, first, last);
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_nf4_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_nf4_avx2, fenced<dequantize_nf4>>(
        QCTS_OP_DEQUANTIZE, "nf4", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
