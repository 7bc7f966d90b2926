// SPDX-License-Identifier: BSD-3-Clause
// Half a byte in, two or four out: kernels/avx2/dequantize/int4_dequantize.h. Rounds like
// int4_e4m3_scalar.cc. The float8 product of a nibble and its group's scale depends on only twelve bits, so
// all products are computed once per call.
#include "kernels/avx2/dequantize/int4_dequantize.h"
#include "kernels/avx2/float8.h"
#include "kernels/avx2/quantize/blocks.h"

namespace {

using namespace qcts::avx2;

constexpr int kSigned = 0x80;  // of a float8 code

template <uint32_t kOfDtype>
struct E4m3Params {
  static constexpr uint32_t kDtype = kOfDtype;
  static constexpr bool kHighFirst = false, kPairs = false;

  explicit E4m3Params(const qcts_problem& p)
      : scale_plane(qcts::in_plane(p, "scale")), row_scales(qcts::in_plane(p, "row_scale")), n_count(p.n) {
    for (int scale = 0; scale < kSigned; ++scale)
      for (int size = 0; size <= 8; ++size) put_products(scale, size);
  }
  void load(const Tile& tile) {
    load_tile(tile, scale_plane, n_count, &scales);
    for (int64_t row = 0; row < tile.rows; ++row)
      row_scale[row] = one_element(QCTS_F32, row_scales, tile.first_n + row);
  }
  Lut16 table(int64_t row, int64_t g) const {
    return lut16_of_products(kDtype, products[static_cast<uint8_t>(*scales.at(row, g))], row_scale[row]);
  }

 private:
  static float float8_value(int code) {
    const auto byte = static_cast<uint8_t>(code);
    char codes[kLanes] = {static_cast<char>(byte)};
    return _mm256_cvtss_f32(small_float<Float8::e4m3>(codes));
  }
  // Writes the products of `scale`, and of -scale, with the codes `size` and -size.
  void put_products(int scale, int size) {
    const float product = size == 0
                              ? 0
                              : float8_value(qcts::small_float_code(
                                    qcts::SmallFloat::e4m3, static_cast<float>(size) * float8_value(scale)));
    if (size < 8) products[scale][size] = product, products[scale + kSigned][size] = size == 0 ? 0 : -product;
    if (size > 0) products[scale][16 - size] = -product, products[scale + kSigned][16 - size] = product;
  }

  const void *scale_plane, *row_scales;
  int64_t n_count;
  ParameterTile<1> scales;
  float row_scale[kTileRows];
  alignas(32) float products[2 * kSigned][16];  // indexed by scale and nibble
};

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_e4m3_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_e4m3_avx2, dequantize_int4<E4m3Params, ByteShuffles>>(
        QCTS_OP_DEQUANTIZE, "int4_e4m3", "avx2",
        "16 values per group, looked up by byte shuffles; bound by writing the result");
