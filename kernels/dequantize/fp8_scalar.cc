// torchao 0.18 Float8Tensor.dequantize with a scale for the tensor, for 128 x 128, for a row or for a group
// of one: the code as float32 times the float32 scale, rounded to float32 and then to the weight's dtype.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using namespace qcts::scalar;

void dequantize_fp8(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const void* scales = qcts::in_plane(p, "scale");
  const bool e5m2 = qcts::scheme_name_has(p, "_e5m2");
  const int64_t rows = qcts::scheme_name_has(p, "_tensor")     ? p.n
                       : qcts::scheme_name_has(p, "_block128") ? 128
                                                               : 1;
  const int64_t length = p.group != 0 ? p.group : p.k;
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const uint8_t code = codes[n * p.k + k];
      const float scale = load(QCTS_F32, scales, n / rows * (p.k / length) + k / length);
      store(p.w_dtype, row, k, (e5m2 ? e5m2_to_f32(code) : e4m3fn_to_f32(code)) * scale);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_scalar, dequantize_fp8>(
        QCTS_OP_DEQUANTIZE, "fp8", "scalar", "one decoding, one multiplication and one rounding an element");
