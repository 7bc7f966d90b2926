// One byte in, two or four out: bound by writing the result. A code's seven low bits, moved to a float's
// exponent and fraction, are its value times 2^-120, subnormals included; one exact multiplication puts that
// right, and the two NaN codes are patched.
#include "kernels/avx2.h"

namespace {

using namespace qcts::avx2;

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const char* scale;
};

__m256 decode8(const void* codes, __m256 scale) {
  const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(codes)));
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7F));
  const __m256i sign = _mm256_and_si256(wide, _mm256_set1_epi32(static_cast<int>(0x80000000u)));
  const __m256i nan = _mm256_slli_epi32(_mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7F)), 22);
  const __m256 value =
      _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(magnitude, 20)), _mm256_set1_ps(0x1p120f));
  const __m256i signed_value = _mm256_or_si256(_mm256_or_si256(_mm256_castps_si256(value), sign), nan);
  return _mm256_mul_ps(_mm256_castsi256_ps(signed_value), scale);
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
    const __m256 scale = _mm256_set1_ps(row_scale);
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes) store8(p.w_dtype, row + k * bytes, decode8(codes + k, scale));
    if (k < p.k) {
      uint8_t rest[kLanes] = {};
      std::memcpy(rest, codes + k, static_cast<size_t>(p.k - k));
      store_some(p.w_dtype, row + k * bytes, decode8(rest, scale), p.k - k);
    }
  }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return qcts::check_problem(qcts_kernel_dequantize_fp8_row_avx2, problem, why, why_size);
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_fp8_row_avx2, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")), static_cast<const char*>(data("scale"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx2 = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_DEQUANTIZE,
    .scheme = "fp8_row",
    .variant = "avx2",
    .description = "eight codes at a time by shift and multiplication; bound by writing the result",
    .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,
    .reserved = 0,
    .numerics = {},
    .supports = supports,
    .workspace_bytes = nullptr,
    .prepared_bytes = nullptr,
    .prepare = nullptr,
    .run = run,
};
