// One byte in, two or four out: bound by writing the result, so the only care is to keep conversion,
// subtraction, multiplication and rounding below the eight bytes a cycle that a core can store to memory.
// Roundings as in torchao 0.18: product to float32, then dtype.
#include "kernels/avx2.h"

namespace {

using namespace qcts::avx2;

struct Task {
  const qcts_problem* problem;
  const int8_t* qdata;
  const char* scale;
  const int8_t* zero_point;
};

__m256 decode8(const void* codes, __m256i zero_point, __m256 scale) {
  const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(codes)));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(wide, zero_point)), scale);
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
    const __m256 scale = _mm256_set1_ps(row_scale);
    const __m256i zero_point = _mm256_set1_epi32(task.zero_point[n]);
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes)
      store8(p.w_dtype, row + k * bytes, decode8(codes + k, zero_point, scale));
    if (k < p.k) {
      int8_t rest[kLanes] = {};
      std::memcpy(rest, codes + k, static_cast<size_t>(p.k - k));
      store_some(p.w_dtype, row + k * bytes, decode8(rest, zero_point, scale), p.k - k);
    }
  }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return qcts::check_problem(qcts_kernel_dequantize_int8_row_avx2, problem, why, why_size);
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_int8_row_avx2, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const int8_t*>(data("qdata")), static_cast<const char*>(data("scale")),
               static_cast<const int8_t*>(data("zero_point"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int8_row_avx2 = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_DEQUANTIZE,
    .scheme = "int8_row",
    .variant = "avx2",
    .description = "eight codes at a time; bound by writing the result",
    .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,
    .reserved = 0,
    .numerics = {},
    .supports = supports,
    .workspace_bytes = nullptr,
    .prepared_bytes = nullptr,
    .prepare = nullptr,
    .run = run,
};
