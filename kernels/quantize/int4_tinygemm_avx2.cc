// torchao 0.18 _choose_qparams_affine_tinygemm and _quantize_affine_tinygemm, as int4_tinygemm_scalar.cc has them.
// Every step rounds to the weight's dtype, so a code costs a division and, in bfloat16, two roundings of five
// operations each: some 20 operations for eight codes, which bound the kernel. Roundings skip the care for NaN: a
// group with a NaN or an infinity has codes 0 throughout, and those of others are finite.
#include <math.h>

#include "kernels/avx2_quantize.h"

namespace {

using namespace qcts::avx2;

struct Int4Group {
  float scale, zero;
};

// Finite eight, rounded to the dtype.
template <uint32_t kDtype>
__m256 rounded(__m256 value) {
  if (kDtype == QCTS_F32) return value;
  if (kDtype == QCTS_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7FFF));
  return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

float horizontal(__m256 value, bool largest) {
  float lanes[kLanes];
  _mm256_storeu_ps(lanes, value);
  float best = lanes[0];
  for (float lane : lanes) best = largest == (lane > best) ? lane : best;
  return best;
}

template <uint32_t kDtype>
Int4Group choose_int4(const char* at, int64_t count, float least_scale) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  __m256 low = load8(kDtype, at), high = low, nan = _mm256_cmp_ps(low, low, _CMP_UNORD_Q);
  for (int64_t i = kLanes; i < count; i += kLanes) {
    const __m256 x = load8(kDtype, at + i * kBytes);
    low = _mm256_min_ps(low, x);
    high = _mm256_max_ps(high, x);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  if (_mm256_movemask_ps(nan) != 0) return {NAN, NAN};
  const float least = horizontal(low, false), most = horizontal(high, true);
  float scale = round_once(kDtype, round_once(kDtype, most - least) / 15.0f);
  if (scale < least_scale) scale = least_scale;
  return {scale, round_once(kDtype, least + round_once(kDtype, scale * 8.0f))};
}

// Eight codes as int32: clamp(round((x - low) / scale), 0, 15).
template <uint32_t kDtype>
__m256i int4_codes(const char* at, __m256 low, __m256 scale) {
  const __m256 above = rounded<kDtype>(_mm256_sub_ps(load8(kDtype, at), low));
  const __m256i steps = _mm256_cvtps_epi32(rounded<kDtype>(_mm256_div_ps(above, scale)));
  return _mm256_min_epi32(_mm256_max_epi32(steps, _mm256_setzero_si256()), _mm256_set1_epi32(15));
}

// 32 codes to 16 bytes, the even one in the high nibble: of each 16-bit lane, byte 0 * 16 + byte 1.
__m128i int4_pairs(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x0110));
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0xD8));
}

template <uint32_t kDtype>
void quantize_int4_group(const char* at, int64_t count, Int4Group group, uint8_t* out) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const float offset = round_once(kDtype, group.zero - round_once(kDtype, group.scale * 8.0f));
  if (!(offset - offset == 0) || !(group.scale - group.scale == 0)) {
    std::memset(out, 0, static_cast<size_t>(count / 2));
    return;
  }
  const __m256 low = _mm256_set1_ps(offset), scale = _mm256_set1_ps(group.scale);
  const auto eight = [&](int64_t i) { return int4_codes<kDtype>(at + i * kBytes, low, scale); };
  int64_t i = 0;
  for (; i + 32 <= count; i += 32)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i / 2),
                     int4_pairs(narrow_to_bytes(eight(i), eight(i + 8), eight(i + 16), eight(i + 24))));
  for (; i < count; i += kLanes) {
    const __m256i wide = eight(i);
    uint8_t pairs[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs), int4_pairs(narrow_to_bytes(wide, wide, wide, wide)));
    std::memcpy(out + i / 2, pairs, 4);
  }
}

// Int4OpaqueTensor.from_hp passes eps 1e-6; Int4TilePackedTo4dTensor.from_hp none, which is bfloat16's smallest normal.
float int4_least_scale(const qcts_problem& p) {
  if (p.layout != nullptr && std::strcmp(p.layout, "tile_packed_4d") == 0) return 0x1p-126f;
  return round_once(p.w_dtype, 1e-6f);
}

template <uint32_t kDtype>
void quantize_int4_dtype(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  auto* qdata = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto* pairs = static_cast<char*>(qcts::out_plane(p, "scale_and_zero"));
  const float least_scale = int4_least_scale(p);
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      const char* at = static_cast<const char*>(p.x) + n * p.ldx_bytes + k * kBytes;
      const Int4Group group = choose_int4<kDtype>(at, p.group, least_scale);
      quantize_int4_group<kDtype>(at, p.group, group, qdata + (n * p.k + k) / 2);
      store_some(kDtype, pairs + 2 * kBytes * (k / p.group * p.n + n),
                 _mm256_setr_ps(group.scale, group.zero, 0, 0, 0, 0, 0, 0), 2);
    }
}

void quantize_int4_rows(const qcts_problem& p, int64_t first, int64_t last) {
  if (p.w_dtype == QCTS_F32) return quantize_int4_dtype<QCTS_F32>(p, first, last);
  if (p.w_dtype == QCTS_F16) return quantize_int4_dtype<QCTS_F16>(p, first, last);
  quantize_int4_dtype<QCTS_BF16>(p, first, last);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_int4_tinygemm_avx2, quantize_int4_rows>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "avx2",
        "two passes a group, the second in cache; bound by one division and two roundings for eight codes");
