// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 mx_tensor.py, to_dtype. Element and e8m0 scale are exact; their product is rounded to float32,
// then to the weight's dtype. Six-bit elements are in the low bits of a byte; of two four-bit elements the
// even one is in the low nibble.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

constexpr int64_t kMxBlock = 32;

enum class MxElement { e4m3, e5m2, e2m3, e3m2, e2m1 };

MxElement mx_element(const qcts_problem& p) {
  const uint32_t element = qcts::scheme_params(p).element_dtype;
  if (element == QCTS_F4_E2M1_X2) return MxElement::e2m1;
  if (element == QCTS_F6_E2M3) return MxElement::e2m3;
  if (element == QCTS_F6_E3M2) return MxElement::e3m2;
  return element == QCTS_F8_E5M2 ? MxElement::e5m2 : MxElement::e4m3;
}

float mx_value(MxElement element, const uint8_t* codes, int64_t index) {
  switch (element) {
    case MxElement::e4m3:
      return e4m3fn_to_f32(codes[index]);
    case MxElement::e5m2:
      return e5m2_to_f32(codes[index]);
    case MxElement::e2m3:
      return small_to_f32(codes[index], 2, 3);
    case MxElement::e3m2:
      return small_to_f32(codes[index], 3, 2);
    default:
      return small_to_f32(index % 2 == 0 ? codes[index / 2] & 15u : codes[index / 2] >> 4, 2, 1);
  }
}

void dequantize_mx(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const MxElement element = mx_element(p);
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t index = n * p.k + k;
      store(p.w_dtype, row, k, mx_value(element, codes, index) * e8m0_to_f32(scales[index / kMxBlock]));
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_mx_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_mx_scalar, dequantize_mx>(
        QCTS_OP_DEQUANTIZE, "mx", "scalar", "one decoding, one multiplication and one rounding per element");
