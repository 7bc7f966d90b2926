// (code - 8) * scale + zero, rounded once to the weight's dtype: what the CUDA kernel's bfloat16 fma gives. A
// group has 16 values, so they are computed exactly, 16 to a group, and looked up.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using qcts::scalar::load;

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const void* scale_and_zero;
};

// The product of a 4-bit and a 24-bit integer is exact in double. The sum and the narrowing go to odd, so the
// store's rounding to a 16-bit dtype is the only one; float32 has no room for a step to odd and is rounded
// straight from the double.
void fill_table(uint32_t dtype, float scale, float zero, float* table) {
  for (int code = 0; code < 16; ++code) {
    const double sum = qcts::scalar::add_to_odd(static_cast<double>(code - 8) * scale, zero);
    table[code] = dtype == QCTS_F32 ? static_cast<float>(sum) : qcts::scalar::round_to_odd(sum);
  }
}

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  float table[16];
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      if (k % p.group == 0) {
        const int64_t place = 2 * (k / p.group * p.n + n);
        fill_table(p.w_dtype, load(p.w_dtype, task.scale_and_zero, place),
                   load(p.w_dtype, task.scale_and_zero, place + 1), table);
      }
      const uint8_t pair = task.qdata[(n * p.k + k) / 2];
      qcts::scalar::store(p.w_dtype, row, k, table[k % 2 == 0 ? pair >> 4 : pair & 15]);
    }
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_int4_tinygemm_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")), data("scale_and_zero")};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_scalar =
    qcts::exact_entry(QCTS_OP_DEQUANTIZE, "int4_tinygemm", "scalar",
                      "16 exact values a group, then one lookup and one rounding an element",
                      {qcts::supports_problem<qcts_kernel_dequantize_int4_tinygemm_scalar>, run});
