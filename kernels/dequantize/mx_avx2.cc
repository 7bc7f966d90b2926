// MXFP4: a block's 16 values are computed once and looked up. MXFP8 and MXFP6: kernels/avx2_scaled.h. All
// bound by writing the result. Roundings as in mx_scalar.cc.
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

using Convert = void (*)(uint32_t dtype, const uint8_t* codes, int64_t count, float factor, char* to);

void convert_e2m1(uint32_t dtype, const uint8_t* codes, int64_t count, float factor, char* to) {
  const Table table = table_of_products(dtype, kMxE2m1, factor);
  look_up_codes<false>(dtype, table, codes, count, to);
}

Convert mx_convert(const qcts_problem& p) {
  if (qcts::scheme_name_has(p, "mxfp4")) return convert_e2m1;
  if (qcts::scheme_name_has(p, "_e2m3")) return scale_floats<Float8::e2m3>;
  if (qcts::scheme_name_has(p, "_e3m2")) return scale_floats<Float8::e3m2>;
  return qcts::scheme_name_has(p, "_e5m2") ? scale_floats<Float8::e5m2> : scale_floats<Float8::e4m3>;
}

void dequantize_mx(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const Convert convert = mx_convert(p);
  const int64_t per_byte = convert == convert_e2m1 ? 2 : 1, bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += kMxBlockK) {
      const int64_t at = n * p.k + k;
      convert(p.w_dtype, codes + at / per_byte, kMxBlockK, e8m0_value(scales[at / kMxBlockK]),
              static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes);
    }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_mx_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_mx_avx2, dequantize_mx>(
        QCTS_OP_DEQUANTIZE, "mx", "avx2",
        "a table a block, or eight elements at a time; bound by writing the result");
