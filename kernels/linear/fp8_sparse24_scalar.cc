// y = scale * sum(x * value(code)) + bias over the two of four k that are stored
// (kernels/dequantize/fp8_sparse24_scalar.cc). Limited by one dependent addition an element; it exists to be
// read. Sums are in double: each product of a 24-bit and a 4-bit integer is exact there, so only the
// additions round. What is not stored is a zero that meets x all the same: 0 * Inf is NaN.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using namespace qcts::scalar;

double sparse_dot(const qcts_problem& p, int64_t m, int64_t n) {
  const char* x = static_cast<const char*>(p.x) + m * p.ldx_bytes;
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata")) + n * (p.k / 2);
  const auto* metadata = static_cast<const uint8_t*>(qcts::in_plane(p, "sparse_metadata")) + n * (p.k / 8);
  double sum = 0;
  for (int64_t chunk = 0; chunk < p.k / 4; ++chunk) {
    const int pair = metadata[chunk / 2], places = chunk % 2 == 0 ? pair & 15 : pair >> 4;
    float four[4] = {0, 0, 0, 0};
    if (places != 0) {
      four[places & 3] = e4m3fn_to_f32(codes[2 * chunk]);
      four[places >> 2] = e4m3fn_to_f32(codes[2 * chunk + 1]);
    }
    for (int64_t i = 0; i < 4; ++i) sum += static_cast<double>(load(p.x_dtype, x, 4 * chunk + i)) * four[i];
  }
  return sum;
}

void sparse_columns(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  const void* scales = qcts::in_plane(p, "scale");
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = first; n < last; ++n) {
      double sum = sparse_dot(p, m, n) * load(QCTS_F32, scales, n);
      if (p.bias != nullptr) sum += load(p.bias_dtype, p.bias, n);
      store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n, sum);
    }
}

void sparse_linear(const qcts_problem* problem) {
  qcts_problem copy = *problem;
  qcts::parallel_for(copy.threads, copy.n, 1, sparse_columns, &copy);
}

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_sparse24_scalar =
    qcts::linear_entry("fp8_sparse24", "scalar",
                       "a sum in double per output; bound by one dependent addition an element", QCTS_F64,
                       {qcts::supports_problem<qcts_kernel_linear_fp8_sparse24_scalar>,
                        qcts::run_checked<qcts_kernel_linear_fp8_sparse24_scalar, sparse_linear>});
