// Half a byte in, two or four out: bound by making a table of 16 values for every 16 elements, 2
// multiplications and their rounding. Roundings as in nvfp4_scalar.cc.
#include "kernels/avx2_float8.h"
#include "kernels/avx2_table.h"

namespace {

using namespace qcts::avx2;

alignas(32) constexpr float kE2m1[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                         -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

void dequantize_nvfp4(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const void* whole = qcts::in_plane(p, "per_tensor_scale");
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += 16) {
      const int64_t block = (n * p.k + k) / 16;
      uint8_t code[8] = {scales[block]};
      float scale = _mm256_cvtss_f32(small_float<Float8::e4m3>(code));
      if (whole != nullptr) scale = one_element(QCTS_F32, whole, 0) * scale;
      const Table table = table_of_products(p.w_dtype, kE2m1, scale);
      look_up_codes<false>(p.w_dtype, table, pairs + 8 * block, 16,
                           static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes);
    }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_nvfp4_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_nvfp4_avx2, dequantize_nvfp4>(
        QCTS_OP_DEQUANTIZE, "nvfp4", "avx2",
        "16 values a block of 16, looked up by byte shuffles; bound by making them");
