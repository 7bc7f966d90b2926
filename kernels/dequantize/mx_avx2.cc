// MXFP4: a block's 16 values are computed once and looked up, in bfloat16 by six operations a block and 0.3
// an element. MXFP8 and MXFP6: kernels/avx2_scaled.h. Roundings as in mx_scalar.cc.
#include "kernels/avx2_scaled.h"
#include "kernels/avx2_table.h"

namespace {

using namespace qcts::avx2;

constexpr int64_t kMxBlockK = 32;
alignas(32) constexpr float kMxE2m1[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                           -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// 2^(code - 127); 0 is a subnormal, 255 is NaN.
float e8m0_value(uint8_t code) {
  if (code == 255) return __builtin_bit_cast(float, 0x7FC00000u);
  return __builtin_bit_cast(float, code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

// Converts a block: its codes at `codes`, `count` of them.
using Convert = void (*)(uint32_t dtype, const uint8_t* codes, int64_t count, float factor, bool past_caches,
                         char* to);

template <Convert kConvert, int64_t kPerByte>
void dequantize_mx_rows(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  const bool past_caches = is_past_caches(p, kMxBlockK);
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += kMxBlockK) {
      const int64_t at = n * p.k + k;
      kConvert(p.w_dtype, codes + at / kPerByte, kMxBlockK, e8m0_value(scales[at / kMxBlockK]), past_caches,
               static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes);
    }
}

// In bfloat16 a power of two is added to the exponents of the 16 values, none of which is rounded; not to
// those of the zeros.
void dequantize_mxfp4_bf16(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const __m256i ones =
      _mm256_set_m128i(to_bf16(_mm256_load_ps(kMxE2m1 + 8)), to_bf16(_mm256_load_ps(kMxE2m1)));
  const __m256i zeros = _mm256_cmpeq_epi16(_mm256_slli_epi16(ones, 1), _mm256_setzero_si256());
  const bool past_caches = is_past_caches(p, kMxBlockK);
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += kMxBlockK) {
      const int64_t at = n * p.k + k;
      const uint8_t scale = scales[at / kMxBlockK];
      char* to = static_cast<char*>(p.y) + n * p.ldy_bytes + 2 * k;
      Table table;
      if (scale < 4 || scale > 250) {  // subnormal, infinite or NaN ones among them
        table = table_of_products(QCTS_BF16, kMxE2m1, e8m0_value(scale));
      } else {
        const __m256i power = _mm256_set1_epi16(static_cast<int16_t>((scale - 127) * 128));
        split_bytes(_mm256_add_epi16(ones, _mm256_andnot_si256(zeros, power)), &table.low, &table.high);
      }
      look_up_codes<false, false>(table, codes + at / 2, kMxBlockK, to, past_caches);
    }
}

void convert_e2m1(uint32_t dtype, const uint8_t* codes, int64_t count, float factor, bool past_caches,
                  char* to) {
  look_up_codes<false>(dtype, table_of_products(dtype, kMxE2m1, factor), codes, count, to, past_caches);
}

void dequantize_mx(const qcts_problem& p, int64_t first, int64_t last) {
  const bool e5m2 = qcts::scheme_name_has(p, "_e5m2");
  const auto rows = qcts::scheme_name_has(p, "mxfp4")
                        ? p.w_dtype == QCTS_BF16 ? dequantize_mxfp4_bf16 : dequantize_mx_rows<convert_e2m1, 2>
                    : qcts::scheme_name_has(p, "_e2m3") ? dequantize_mx_rows<scale_floats<Float8::e2m3>, 1>
                    : qcts::scheme_name_has(p, "_e3m2") ? dequantize_mx_rows<scale_floats<Float8::e3m2>, 1>
                    : e5m2                              ? dequantize_mx_rows<scale_floats<Float8::e5m2>, 1>
                                                        : dequantize_mx_rows<scale_floats<Float8::e4m3>, 1>;
  rows(p, first, last);
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_mx_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_mx_avx2, fenced<dequantize_mx>>(
        QCTS_OP_DEQUANTIZE, "mx", "avx2",
        "a table a block, or eight elements at a time; bound by writing the result");
