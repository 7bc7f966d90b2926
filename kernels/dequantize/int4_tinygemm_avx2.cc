// Half a byte in, two or four out: bound by writing the result. A group has 16 values, so (q - 8) * scale +
// zero is computed 16 times a group, and the codes only look it up: two byte shuffles a 16-bit result, two
// permutations and a blend a float. The values are rounded once. Where they are 16 bits wide, the sum in
// double and its narrowing to float both go to odd (to the neighbour with an odd last bit when inexact),
// after which the final rounding to nearest is that of the exact sum.
#include "kernels/avx2.h"

namespace {

using namespace qcts::avx2;

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const char* scale_and_zero;
};

// The values of the 16 codes, in the forms that lookups want.
struct Table {
  float wide[16];  // rounded to dtype for F32, to odd otherwise
  uint16_t narrow[16];
  __m128i low, high;  // bytes of narrow
};

// product + zero of four doubles, to odd.
__m256d add_to_odd(__m256d product, __m256d zero) {
  const __m256d sum = _mm256_add_pd(product, zero);
  const __m256d rest = _mm256_sub_pd(sum, product);
  const __m256d error =
      _mm256_add_pd(_mm256_sub_pd(product, _mm256_sub_pd(sum, rest)), _mm256_sub_pd(zero, rest));
  const __m256i bits = _mm256_castpd_si256(sum), one = _mm256_set1_epi64x(1);
  const __m256i inexact = _mm256_castpd_si256(_mm256_cmp_pd(error, _mm256_setzero_pd(), _CMP_NEQ_OQ));
  const __m256i even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  // Away from zero when the error has the sum's sign: step 1, otherwise -1.
  const __m256i opposite = _mm256_srli_epi64(_mm256_xor_si256(_mm256_castpd_si256(error), bits), 63);
  const __m256i step = _mm256_sub_epi64(one, _mm256_slli_epi64(opposite, 1));
  return _mm256_castsi256_pd(_mm256_add_epi64(bits, _mm256_and_si256(step, _mm256_and_si256(inexact, even))));
}

// Four doubles to floats, to odd. Below the smallest float that is the smallest float, above the largest the
// largest.
__m128 narrow_to_odd(__m256d value) {
  const __m128 nearest = _mm256_cvtpd_ps(value);
  const __m256d back = _mm256_cvtps_pd(nearest);
  const __m256d sign = _mm256_set1_pd(-0.0);
  const __m256d up64 = _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, value), _CMP_LT_OQ);
  const __m256d down64 =
      _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, value), _CMP_GT_OQ);
  const auto narrow_mask = [](__m256d mask) {
    const __m256i bits = _mm256_castpd_si256(mask);
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(_mm256_castsi256_si128(bits)),
                                           _mm_castsi128_ps(_mm256_extracti128_si256(bits, 1)),
                                           _MM_SHUFFLE(2, 0, 2, 0)));
  };
  const __m128i bits = _mm_castps_si128(nearest), one = _mm_set1_epi32(1);
  const __m128i even = _mm_cmpeq_epi32(_mm_and_si128(bits, one), _mm_setzero_si128());
  const __m128i up = _mm_and_si128(_mm_and_si128(narrow_mask(up64), even), one);
  const __m128i down = _mm_and_si128(_mm_and_si128(narrow_mask(down64), even), one);
  return _mm_castsi128_ps(_mm_sub_epi32(_mm_add_epi32(bits, up), down));
}

void fill_wide(uint32_t dtype, float scale, float zero, Table* table) {
  if (dtype == QCTS_F32) {
    const __m256 low = _mm256_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1),
                 high = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_storeu_ps(table->wide, _mm256_fmadd_ps(low, _mm256_set1_ps(scale), _mm256_set1_ps(zero)));
    _mm256_storeu_ps(table->wide + 8, _mm256_fmadd_ps(high, _mm256_set1_ps(scale), _mm256_set1_ps(zero)));
    return;
  }
  for (int code = 0; code < 16; code += 4) {
    const __m256d codes = _mm256_setr_pd(code - 8, code - 7, code - 6, code - 5);
    const __m256d product = _mm256_mul_pd(codes, _mm256_set1_pd(scale));
    _mm_storeu_ps(table->wide + code, narrow_to_odd(add_to_odd(product, _mm256_set1_pd(zero))));
  }
}

void fill_table(uint32_t dtype, float scale, float zero, Table* table) {
  fill_wide(dtype, scale, zero, table);
  if (dtype == QCTS_F32) return;
  store8(dtype, table->narrow, _mm256_loadu_ps(table->wide));
  store8(dtype, table->narrow + 8, _mm256_loadu_ps(table->wide + 8));
  const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table->narrow));
  const __m256i low = _mm256_and_si256(values, _mm256_set1_epi16(0xFF)), high = _mm256_srli_epi16(values, 8);
  table->low = _mm_packus_epi16(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  table->high = _mm_packus_epi16(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

// 32 codes to 64 bytes. `even` and `odd` are the codes of even and odd k.
void look_up_narrow(const Table& table, __m128i even, __m128i odd, char* to) {
  const __m128i even_low = _mm_shuffle_epi8(table.low, even), even_high = _mm_shuffle_epi8(table.high, even);
  const __m128i odd_low = _mm_shuffle_epi8(table.low, odd), odd_high = _mm_shuffle_epi8(table.high, odd);
  const __m128i e0 = _mm_unpacklo_epi8(even_low, even_high), e1 = _mm_unpackhi_epi8(even_low, even_high);
  const __m128i o0 = _mm_unpacklo_epi8(odd_low, odd_high), o1 = _mm_unpackhi_epi8(odd_low, odd_high);
  auto* out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out, _mm_unpacklo_epi16(e0, o0));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(e0, o0));
  _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(e1, o1));
  _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(e1, o1));
}

// The permutation reads the three low bits of a code, the blend its fourth.
__m256 look_up8(const Table& table, __m256i codes) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.wide), codes);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.wide + 8), codes);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
}

void look_up_wide(const Table& table, __m128i even, __m128i odd, char* to) {
  const __m128i in_order[2] = {_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd)};
  for (int half = 0; half < 2; ++half) {
    auto* out = reinterpret_cast<float*>(to) + 16 * half;
    _mm256_storeu_ps(out, look_up8(table, _mm256_cvtepu8_epi32(in_order[half])));
    _mm256_storeu_ps(out + 8, look_up8(table, _mm256_cvtepu8_epi32(_mm_srli_si128(in_order[half], 8))));
  }
}

void dequantize_group(uint32_t dtype, const Table& table, const uint8_t* codes, int64_t count, char* to) {
  const __m128i nibble = _mm_set1_epi8(15);
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) {
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + k / 2));
    const __m128i even = _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble), odd = _mm_and_si128(pairs, nibble);
    if (dtype == QCTS_F32) {
      look_up_wide(table, even, odd, to + 4 * k);
    } else {
      look_up_narrow(table, even, odd, to + 2 * k);
    }
  }
  for (; k < count; ++k) {
    const int code = k % 2 == 0 ? codes[k / 2] >> 4 : codes[k / 2] & 15;
    if (dtype == QCTS_F32) {
      std::memcpy(to + 4 * k, &table.wide[code], 4);
    } else {
      std::memcpy(to + 2 * k, &table.narrow[code], 2);
    }
  }
}

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  const int64_t bytes = qcts::dtype_bytes(p.w_dtype);
  Table table;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      float pair[kLanes];
      _mm256_storeu_ps(pair,
                       load_some(p.w_dtype, task.scale_and_zero + 2 * (k / p.group * p.n + n) * bytes, 2));
      fill_table(p.w_dtype, pair[0], pair[1], &table);
      char* to = static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes;
      dequantize_group(p.w_dtype, table, task.qdata + (n * p.k + k) / 2, p.group, to);
    }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return qcts::check_problem(qcts_kernel_dequantize_int4_tinygemm_avx2, problem, why, why_size);
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_int4_tinygemm_avx2, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")),
               static_cast<const char*>(data("scale_and_zero"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_avx2 = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_DEQUANTIZE,
    .scheme = "int4_tinygemm",
    .variant = "avx2",
    .description = "16 exact values a group, looked up by byte shuffles; bound by writing the result",
    .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,
    .reserved = 0,
    .numerics = {},
    .supports = supports,
    .workspace_bytes = nullptr,
    .prepared_bytes = nullptr,
    .prepare = nullptr,
    .run = run,
};
