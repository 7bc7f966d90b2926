// y = scale * sum(x * (q - zero_point)) + bias. Limited by one dependent addition an element; it exists to be
// read. Sums are in double: each product of a 24-bit and a 9-bit integer is exact there, so only the
// additions round.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using qcts::scalar::load;

struct Task {
  const qcts_problem* problem;
  const int8_t* qdata;
  const void* scale;
  const int8_t* zero_point;
};

double dot(const Task& task, int64_t m, int64_t n) {
  const qcts_problem& p = *task.problem;
  const char* x = static_cast<const char*>(p.x) + m * p.ldx_bytes;
  double sum = 0;
  for (int64_t k = 0; k < p.k; ++k)
    sum += static_cast<double>(load(p.x_dtype, x, k)) * (task.qdata[n * p.k + k] - task.zero_point[n]);
  return sum;
}

void linear_columns(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t m = 0; m < p.m; ++m) {
    char* y = static_cast<char*>(p.y) + m * p.ldy_bytes;
    for (int64_t n = first; n < last; ++n) {
      double sum = dot(task, m, n) * load(QCTS_F32, task.scale, n);
      if (p.bias != nullptr) sum += load(p.bias_dtype, p.bias, n);
      qcts::scalar::store_double(p.y_dtype, y, n, sum);
    }
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_linear_int8_row_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const int8_t*>(data("qdata")), data("scale"),
               static_cast<const int8_t*>(data("zero_point"))};
  qcts::parallel_for(problem->threads, problem->n, 1, linear_columns, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_scalar = qcts::linear_entry(
    "int8_row", "scalar", "a sum in double per output; bound by one dependent addition an element", QCTS_F64,
    {qcts::supports_problem<qcts_kernel_linear_int8_row_scalar>, run});
