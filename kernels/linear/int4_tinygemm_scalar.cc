// y = sum(x * ((q - 8) * scale + zero)) + bias. Limited by one dependent addition an element; it exists to be
// read. Per group, the code times x and x alone are summed in double, where both are exact products; scale
// and zero act on the two sums.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using qcts::scalar::load;

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const void* scale_and_zero;
};

double dot(const Task& task, int64_t m, int64_t n) {
  const qcts_problem& p = *task.problem;
  const char* x = static_cast<const char*>(p.x) + m * p.ldx_bytes;
  double sum = 0;
  for (int64_t group = 0; group < p.k / p.group; ++group) {
    double code_sum = 0, x_sum = 0;
    for (int64_t k = group * p.group; k < (group + 1) * p.group; ++k) {
      const uint8_t pair = task.qdata[(n * p.k + k) / 2];
      const double value = load(p.x_dtype, x, k);
      code_sum += value * ((k % 2 == 0 ? pair >> 4 : pair & 15) - 8);
      x_sum += value;
    }
    const int64_t place = 2 * (group * p.n + n);
    sum += code_sum * load(p.w_dtype, task.scale_and_zero, place);
    sum += x_sum * load(p.w_dtype, task.scale_and_zero, place + 1);
  }
  return sum;
}

void linear_columns(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t m = 0; m < p.m; ++m) {
    char* y = static_cast<char*>(p.y) + m * p.ldy_bytes;
    for (int64_t n = first; n < last; ++n) {
      double sum = dot(task, m, n);
      if (p.bias != nullptr) sum += load(p.bias_dtype, p.bias, n);
      qcts::scalar::store_double(p.y_dtype, y, n, sum);
    }
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_linear_int4_tinygemm_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")), data("scale_and_zero")};
  qcts::parallel_for(problem->threads, problem->n, 1, linear_columns, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_scalar =
    qcts::linear_entry("int4_tinygemm", "scalar",
                       "a sum in double per output and group; bound by one dependent addition an element",
                       QCTS_F64, {qcts::supports_problem<qcts_kernel_linear_int4_tinygemm_scalar>, run});
