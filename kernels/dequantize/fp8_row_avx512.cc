// One byte in, two or four out: bound by writing the result. A code's seven low bits, moved to a float's
// exponent and fraction, are its value times 2^-120, subnormals included; one exact multiplication puts that
// right, and the two NaN codes are patched.
#include "kernels/avx512/elements.h"
#include "kernels/entry.h"

namespace {

using namespace qcts::avx512;

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const char* scale;
};

__m512 decode16(const void* codes, __m512 scale) {
  const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(codes)));
  const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi32(0x7F));
  const __m512i sign = _mm512_and_si512(wide, _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7F));
  const __m512 value =
      _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(magnitude, 20)), _mm512_set1_ps(0x1p120f));
  const __m512i signed_value = _mm512_or_si512(_mm512_castps_si512(value), sign);
  const __m512i patched = _mm512_mask_mov_epi32(signed_value, nan, _mm512_set1_epi32(0x7FC00000));
  return _mm512_mul_ps(_mm512_castsi512_ps(patched), scale);
}

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  const int64_t bytes = qcts::dtype_bytes(p.w_dtype);
  for (int64_t n = first; n < last; ++n) {
    const uint8_t* codes = task.qdata + n * p.k;
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    float row_scale;
    std::memcpy(&row_scale, task.scale + 4 * n, 4);
    const __m512 scale = _mm512_set1_ps(row_scale);
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes) store16(p.w_dtype, row + k * bytes, decode16(codes + k, scale));
    if (k < p.k) {
      uint8_t rest[kLanes] = {};
      std::memcpy(rest, codes + k, static_cast<size_t>(p.k - k));
      store_some(p.w_dtype, row + k * bytes, decode16(rest, scale), p.k - k);
    }
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_fp8_row_avx512, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")), static_cast<const char*>(data("scale"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx512 =
    qcts::exact_entry(QCTS_OP_DEQUANTIZE, "fp8_row", "avx512",
                      "sixteen codes at a time by shift and multiplication; bound by writing the result",
                      {qcts::supports_problem<qcts_kernel_dequantize_fp8_row_avx512>, run});
