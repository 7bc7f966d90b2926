// One byte in, two or four out: bound by writing the result, so the only care is to keep conversion,
// subtraction, multiplication and rounding below the eight bytes a cycle that a core can store to memory.
// Roundings as in torchao 0.18: product to float32, then dtype.
#include "kernels/avx512/elements.h"
#include "kernels/entry.h"

namespace {

using namespace qcts::avx512;

struct Task {
  const qcts_problem* problem;
  const int8_t* qdata;
  const char* scale;
  const int8_t* zero_point;
};

__m512 decode16(const void* codes, __m512i zero_point, __m512 scale) {
  const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(codes)));
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(wide, zero_point)), scale);
}

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  const int64_t bytes = qcts::dtype_bytes(p.w_dtype);
  for (int64_t n = first; n < last; ++n) {
    const int8_t* codes = task.qdata + n * p.k;
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    float row_scale;
    std::memcpy(&row_scale, task.scale + 4 * n, 4);
    const __m512 scale = _mm512_set1_ps(row_scale);
    const __m512i zero_point = _mm512_set1_epi32(task.zero_point[n]);
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes)
      store16(p.w_dtype, row + k * bytes, decode16(codes + k, zero_point, scale));
    if (k < p.k) {
      int8_t rest[kLanes] = {};
      std::memcpy(rest, codes + k, static_cast<size_t>(p.k - k));
      store_some(p.w_dtype, row + k * bytes, decode16(rest, zero_point, scale), p.k - k);
    }
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_int8_row_avx512, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const int8_t*>(data("qdata")), static_cast<const char*>(data("scale")),
               static_cast<const int8_t*>(data("zero_point"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int8_row_avx512 = qcts::exact_entry(
    QCTS_OP_DEQUANTIZE, "int8_row", "avx512", "sixteen codes at a time; bound by writing the result",
    {qcts::supports_problem<qcts_kernel_dequantize_int8_row_avx512>, run});
