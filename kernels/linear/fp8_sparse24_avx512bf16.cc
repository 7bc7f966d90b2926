// Two of four k are stored (kernels/dequantize/fp8_sparse24_scalar.cc); `prepare` puts zeros where none is,
// and from there on this is fp8_row (kernels/avx512bf16_fp8.h): one byte read a weight, of which the
// checkpoint has 5 / 8, and no multiplication saved.
#include "kernels/avx512bf16_fp8.h"

namespace {

using namespace qcts::avx512bf16;

struct Fp8Sparse24 : Fp8Row {
  static void prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
    const auto* metadata = static_cast<const uint8_t*>(qcts::in_plane(p, "sparse_metadata"));
    prepare_parts(p, layout, first_n, out, [&](int64_t n, int64_t first_k, int64_t last_k, const auto& put) {
      for (int64_t k = first_k; k < last_k; k += 4) {
        const int64_t at = n * p.k + k;
        const int places = metadata[at / 8] >> at % 8 & 15;
        if (places == 0) continue;
        if ((places & 3) != places >> 2) put(k + (places & 3), codes[at / 2]);  // of one place, the second
        put(k + (places >> 2), codes[at / 2 + 1]);
      }
    });
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512bf16 =
    linear_of<qcts_kernel_linear_fp8_sparse24_avx512bf16, Fp8Sparse24>(
        "fp8_sparse24",
        "expanded at load, then as fp8_row; bound by reading weights, then by the multiplications");
