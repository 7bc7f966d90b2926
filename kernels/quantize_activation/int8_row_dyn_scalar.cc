// Rows of x to int8, symmetric or asymmetric: two passes a row, one element at a time.
#include "kernels/entry.h"
#include "kernels/scalar_int8.h"

namespace {

struct Task {
  const qcts_problem* problem;
  int8_t* qdata;
  char* scale;
  int8_t* zero_point;
};

void quantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const qcts::scalar::RowScale chosen =
        qcts::scalar::quantize_int8_row(p.x_dtype, p.activation, row, p.k, task.qdata + m * p.k);
    std::memcpy(task.scale + 4 * m, &chosen.scale, 4);
    task.zero_point[m] = static_cast<int8_t>(chosen.zero_point);
  }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_problem& p = *problem;
  if (p.activation == nullptr || !qcts::scalar::is_int8_row_policy(p.activation))
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy %s", p.activation);
  if (p.x_dtype != QCTS_F32 && p.x_dtype != QCTS_F16 && p.x_dtype != QCTS_BF16)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "x must be float32, float16 or bfloat16");
  if (p.device != 0 || p.m <= 0 || p.k <= 0 ||
      (p.m > 1 && p.ldx_bytes < p.k * static_cast<int64_t>(qcts::dtype_bytes(p.x_dtype))))
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "x of %lld x %lld on device %u",
                        static_cast<long long>(p.m), static_cast<long long>(p.k), p.device);
  return QCTS_OK;
}

qcts_status run(const qcts_problem* problem) {
  if (supports(problem, nullptr, 0) != QCTS_OK || problem->x == nullptr) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->out_planes, problem->n_out_planes, name);
  };
  Task task = {problem, static_cast<int8_t*>(data("qdata")), static_cast<char*>(data("scale")),
               static_cast<int8_t*>(data("zero_point"))};
  if (task.qdata == nullptr || task.scale == nullptr || task.zero_point == nullptr) return QCTS_INVALID;
  qcts::parallel_for(problem->threads, problem->m, 1, quantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_scalar = qcts::exact_entry(
    QCTS_OP_QUANTIZE_ACTIVATION, "int8_row:dyn_row_sym,dyn_row_asym,dyn_row_sym_127", "scalar",
    "two passes a row: its range, then codes; bound by float rounding, one element at a time",
    {supports, run});
