// fp8_sparse24_scalar.cc: a part of a row is expanded to codes of a byte each, 32 at a time, then scaled as
// kernels/avx2/scaled.h has it; bound by writing the result.
#include "kernels/avx2/scaled.h"
#include "kernels/avx2/sparse24.h"

namespace {

using namespace qcts::avx2;

constexpr int64_t kPartElems = 1024;  // stay in the first cache

// count: a multiple of 8. Writes up to a multiple of 32.
void expand_part(const uint8_t* values, const uint8_t* metadata, int64_t count, uint8_t* codes) {
  const auto thirty_two = [&](int64_t k, const uint8_t* two, const uint8_t* places) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(codes + k), expand24(two, places));
  };
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) thirty_two(k, values + k / 2, metadata + k / 8);
  if (k == count) return;
  uint8_t two[16] = {}, places[4] = {};
  std::memcpy(two, values + k / 2, static_cast<size_t>((count - k) / 2));
  std::memcpy(places, metadata + k / 8, static_cast<size_t>((count - k) / 8));
  thirty_two(k, two, places);
}

void dequantize_fp8_sparse24(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* values = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* metadata = static_cast<const uint8_t*>(qcts::in_plane(p, "sparse_metadata"));
  const void* scales = qcts::in_plane(p, "scale");
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  const bool past_caches = is_past_caches(p, p.k);
  alignas(32) uint8_t codes[kPartElems];
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float scale = one_element(QCTS_F32, scales, n);
    for (int64_t k = 0; k < p.k; k += kPartElems) {
      const int64_t count = p.k - k < kPartElems ? p.k - k : kPartElems, at = n * p.k + k;
      expand_part(values + at / 2, metadata + at / 8, count, codes);
      scale_floats<Float8::e4m3>(p.w_dtype, codes, count, scale, past_caches, row + k * bytes);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_sparse24_avx2, fenced<dequantize_fp8_sparse24>>(
        QCTS_OP_DEQUANTIZE, "fp8_sparse24", "avx2",
        "expanded to a byte a code by byte shuffles, then as fp8_row; bound by writing the result");
