// SPDX-License-Identifier: BSD-3-Clause
// Two of four k are stored (kernels/dequantize/fp8_sparse24_scalar.cc). Packing fills in the zeros, and from
// then on this is fp8_row (kernels/avx2/fp8_linear.h): it reads one byte per weight and saves no
// multiplication.
#include "kernels/avx2/fp8_linear.h"

namespace {

using namespace qcts::avx2;

struct Fp8Sparse24 : Fp8Row {
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata")) + first_n * (p.k / 2);
    const auto* metadata =
        static_cast<const uint8_t*>(qcts::in_plane(p, "sparse_metadata")) + first_n * (p.k / 8);
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    std::memset(out, 0, static_cast<size_t>(p.k * kColumns));
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t chunk = 0; chunk < p.k / 4; ++chunk) {
        const int pair = metadata[c * (p.k / 8) + chunk / 2], places = chunk % 2 == 0 ? pair & 15 : pair >> 4;
        if (places == 0) continue;
        const uint8_t* stored = codes + c * (p.k / 2) + 2 * chunk;
        out[(4 * chunk + (places & 3)) * kColumns + c] = stored[0];
        out[(4 * chunk + (places >> 2)) * kColumns + c] = stored[1];
      }
    pack_scales(p, first_n, columns, out);
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx2 =
    linear_of<qcts_kernel_linear_fp8_sparse24_avx2, Fp8Sparse24>(
        "fp8_sparse24", "expanded when packed, then as fp8_row; bound by reading weights, then by fma",
        qcts::supports_problem<qcts_kernel_linear_fp8_sparse24_avx2>);
