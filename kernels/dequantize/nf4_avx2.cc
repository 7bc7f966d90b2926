// Half a byte in, two or four out: bound by writing the result. A block's 16 values are computed once, with
// the roundings of nf4_scalar.cc, and looked up. Blocks run through rows, so a row may begin and end inside
// one.
#include "kernels/avx2_table.h"

namespace {

using namespace qcts::avx2;

float nf4_round(uint32_t dtype, float value) {
  char element[32];
  store8(dtype, element, _mm256_set1_ps(value));
  return _mm256_cvtss_f32(load8(dtype, element));
}

void dequantize_nf4(const qcts_problem& p, int64_t first, int64_t last) {
  const uint32_t dtype = p.w_dtype;
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "quantized_data"));
  const auto* scalers = static_cast<const int8_t*>(qcts::in_plane(p, "quantized_scalers"));
  const void *factors = qcts::in_plane(p, "quantization_factor"), *codes = qcts::in_plane(p, "nf4");
  const float mean = one_element(dtype, qcts::in_plane(p, "scaler_mean"), 0);
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = one_element(dtype, codes, i);
  for (int64_t index = first * p.k; index < last * p.k;) {
    const int64_t n = index / p.k, block = index / 64;
    const int64_t block_end = 64 * (block + 1), row_end = (n + 1) * p.k;
    const int64_t end = block_end < row_end ? block_end : row_end;
    const float centred =
        nf4_round(dtype, static_cast<float>(scalers[block]) / one_element(dtype, factors, block / 256));
    const Table table = table_of_products(dtype, values, nf4_round(dtype, centred + mean));
    char* to = static_cast<char*>(p.y) + n * p.ldy_bytes + (index - n * p.k) * bytes;
    // An odd start is the low nibble of its byte.
    if (index % 2 != 0) {
      const uint8_t alone = static_cast<uint8_t>(pairs[index / 2] << 4);
      look_up_codes<true>(dtype, table, &alone, 1, to);
      ++index;
      to += bytes;
    }
    look_up_codes<true>(dtype, table, pairs + index / 2, end - index, to);
    index = end;
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_nf4_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_nf4_avx2, dequantize_nf4>(
        QCTS_OP_DEQUANTIZE, "nf4", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
