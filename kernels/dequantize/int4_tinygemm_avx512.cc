// Half a byte in, two or four out: bound by writing the result. A group has 16 values, so (q - 8) * scale +
// zero is computed 16 times a group, and the codes only look it up: two byte shuffles a 16-bit result, two
// permutations and a blend a float. The values are rounded once. Where they are 16 bits wide, the sum in
// double and its narrowing to float both go to odd (to the neighbour with an odd last bit when inexact),
// after which the final rounding to nearest is that of the exact sum.
#include "kernels/avx512/elements.h"
#include "kernels/entry.h"

namespace {

using namespace qcts::avx512;

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const char* scale_and_zero;
};

// The values of the 16 codes, in the forms that lookups want.
struct Table {
  __m512 wide;          // rounded to dtype for F32, to odd otherwise
  uint16_t narrow[32];  // twice, because the permutation of 16-bit lanes reads five bits of an index
};

// product + zero of eight doubles, to odd.
__m512d add_to_odd(__m512d product, __m512d zero) {
  const __m512d sum = _mm512_add_pd(product, zero);
  const __m512d rest = _mm512_sub_pd(sum, product);
  const __m512d error =
      _mm512_add_pd(_mm512_sub_pd(product, _mm512_sub_pd(sum, rest)), _mm512_sub_pd(zero, rest));
  const __m512i bits = _mm512_castpd_si512(sum), one = _mm512_set1_epi64(1);
  const __mmask8 inexact = _mm512_cmp_pd_mask(error, _mm512_setzero_pd(), _CMP_NEQ_OQ);
  const __mmask8 odd = _mm512_test_epi64_mask(bits, one);
  // Away from zero when the error has the sum's sign: step 1, otherwise -1.
  const __m512i opposite = _mm512_srli_epi64(_mm512_xor_si512(_mm512_castpd_si512(error), bits), 63);
  const __m512i step = _mm512_sub_epi64(one, _mm512_slli_epi64(opposite, 1));
  const auto adjust = static_cast<__mmask8>(inexact & ~odd);
  return _mm512_castsi512_pd(_mm512_mask_add_epi64(bits, adjust, bits, step));
}

// Eight doubles to floats, to odd. Below the smallest float that is the smallest float, above the largest the
// largest.
__m256 narrow_to_odd(__m512d value) {
  const __m256 nearest = _mm512_cvtpd_ps(value);
  const __m512d back = _mm512_abs_pd(_mm512_cvtps_pd(nearest)), wanted = _mm512_abs_pd(value);
  const __m256i bits = _mm256_castps_si256(nearest), one = _mm256_set1_epi32(1);
  const __mmask8 even = static_cast<__mmask8>(~_mm256_test_epi32_mask(bits, one));
  const __mmask8 up = static_cast<__mmask8>(_mm512_cmp_pd_mask(back, wanted, _CMP_LT_OQ) & even);
  const __mmask8 down = static_cast<__mmask8>(_mm512_cmp_pd_mask(back, wanted, _CMP_GT_OQ) & even);
  const __m256i higher = _mm256_mask_add_epi32(bits, up, bits, one);
  return _mm256_castsi256_ps(_mm256_mask_add_epi32(higher, down, higher, _mm256_set1_epi32(-1)));
}

__m512 wide_values(uint32_t dtype, float scale, float zero) {
  const __m512 codes = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  if (dtype == QCTS_F32) return _mm512_fmadd_ps(codes, _mm512_set1_ps(scale), _mm512_set1_ps(zero));
  float values[16];
  for (int half = 0; half < 2; ++half) {
    const double first = 8 * half - 8;
    const __m512d eight = _mm512_add_pd(_mm512_set1_pd(first), _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7));
    const __m512d product = _mm512_mul_pd(eight, _mm512_set1_pd(scale));
    _mm256_storeu_ps(values + 8 * half, narrow_to_odd(add_to_odd(product, _mm512_set1_pd(zero))));
  }
  return _mm512_loadu_ps(values);
}

void fill_table(uint32_t dtype, float scale, float zero, Table* table) {
  table->wide = wide_values(dtype, scale, zero);
  if (dtype == QCTS_F32) return;
  store16(dtype, table->narrow, table->wide);
  store16(dtype, table->narrow + 16, table->wide);
}

// 32 codes, the even k in the high nibbles. The permutations do not read above a code.
void look_up(uint32_t dtype, const Table& table, __m128i pairs, char* to) {
  const __m512i odd = _mm512_cvtepu8_epi32(pairs), even = _mm512_srli_epi32(odd, 4);
  if (dtype != QCTS_F32) {
    const __m512i codes = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(codes, _mm512_loadu_si512(table.narrow)));
    return;
  }
  const __m512 e = _mm512_permutexvar_ps(even, table.wide), o = _mm512_permutexvar_ps(odd, table.wide);
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  _mm512_storeu_ps(to, _mm512_permutex2var_ps(e, low, o));
  _mm512_storeu_ps(to + 64, _mm512_permutex2var_ps(e, high, o));
}

void dequantize_group(uint32_t dtype, const Table& table, const uint8_t* codes, int64_t count, char* to) {
  const int64_t bytes = qcts::dtype_bytes(dtype);
  int64_t k = 0;
  for (; k + 32 <= count; k += 32)
    look_up(dtype, table, _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + k / 2)), to + k * bytes);
  if (k == count) return;
  uint8_t rest[16] = {};
  char values[128];
  std::memcpy(rest, codes + k / 2, static_cast<size_t>((count - k) / 2));
  look_up(dtype, table, _mm_loadu_si128(reinterpret_cast<const __m128i*>(rest)), values);
  std::memcpy(to + k * bytes, values, static_cast<size_t>((count - k) * bytes));
}

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  const int64_t bytes = qcts::dtype_bytes(p.w_dtype);
  Table table;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      float pair[kLanes];
      _mm512_storeu_ps(pair,
                       load_some(p.w_dtype, task.scale_and_zero + 2 * (k / p.group * p.n + n) * bytes, 2));
      fill_table(p.w_dtype, pair[0], pair[1], &table);
      char* to = static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes;
      dequantize_group(p.w_dtype, table, task.qdata + (n * p.k + k) / 2, p.group, to);
    }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_int4_tinygemm_avx512, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")),
               static_cast<const char*>(data("scale_and_zero"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_avx512 = qcts::exact_entry(
    QCTS_OP_DEQUANTIZE, "int4_tinygemm", "avx512",
    "16 exact values a group, looked up by one permutation a vector; bound by writing the result",
    {qcts::supports_problem<qcts_kernel_dequantize_int4_tinygemm_avx512>, run});
