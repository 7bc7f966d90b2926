// W8A8: y = sx * sw * sum((qx - zx) * (qw - zw)) + bias. x is quantized into the workspace a row at a time;
// sums are integers and exact, so only the two scales, the bias and y round, in double.
#include "kernels/scalar_int8.h"
#include "kernels/support.h"

namespace {

struct Task {
  const qcts_problem* problem;
  const int8_t* qdata;
  const void* scale;
  const int8_t* zero_point;
  int8_t* codes;                 // [m, k]
  qcts::scalar::RowScale* rows;  // [m]
};

uint64_t rows_offset(const qcts_problem& p) { return (static_cast<uint64_t>(p.m * p.k) + 63) / 64 * 64; }

uint64_t workspace_bytes(const qcts_problem* problem) {
  return rows_offset(*problem) + static_cast<uint64_t>(problem->m) * sizeof(qcts::scalar::RowScale);
}

void quantize_rows(const Task& task) {
  const qcts_problem& p = *task.problem;
  for (int64_t m = 0; m < p.m; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    task.rows[m] =
        qcts::scalar::int8_row_scale(p.x_dtype, row, p.k, qcts::scalar::is_asymmetric(p.activation));
    const float reciprocal = 1.0f / task.rows[m].scale;
    for (int64_t k = 0; k < p.k; ++k)
      task.codes[m * p.k + k] =
          qcts::scalar::int8_code(qcts::scalar::load(p.x_dtype, row, k), reciprocal, task.rows[m].zero_point);
  }
}

void linear_columns(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t m = 0; m < p.m; ++m) {
    char* y = static_cast<char*>(p.y) + m * p.ldy_bytes;
    const qcts::scalar::RowScale x = task.rows[m];
    for (int64_t n = first; n < last; ++n) {
      int64_t sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += (task.codes[m * p.k + k] - x.zero_point) * (task.qdata[n * p.k + k] - task.zero_point[n]);
      double value = static_cast<double>(sum) * x.scale * qcts::scalar::load(QCTS_F32, task.scale, n);
      if (p.bias != nullptr) value += qcts::scalar::load(p.bias_dtype, p.bias, n);
      qcts::scalar::store_double(p.y_dtype, y, n, value);
    }
  }
}

// What the weight-only kernel of the scheme takes, beside the policy.
qcts_problem as_weight_only(const qcts_problem& problem) {
  qcts_problem copy = problem;
  copy.activation = "weight_only";
  return copy;
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const char* policy = problem->activation;
  if (policy == nullptr ||
      (std::strcmp(policy, "dyn_row_sym") != 0 && std::strcmp(policy, "dyn_row_asym") != 0))
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy %s", policy);
  const qcts_problem copy = as_weight_only(*problem);
  return qcts::check_problem(qcts_kernel_linear_int8_row_scalar, &copy, why, why_size);
}

qcts_status run(const qcts_problem* problem) {
  const qcts_problem copy = as_weight_only(*problem);
  if (supports(problem, nullptr, 0) != QCTS_OK ||
      qcts::check_run(qcts_kernel_linear_int8_row_scalar, &copy) != QCTS_OK ||
      problem->workspace == nullptr || problem->workspace_bytes < workspace_bytes(problem))
    return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  char* workspace = static_cast<char*>(problem->workspace);
  Task task = {problem,
               static_cast<const int8_t*>(data("qdata")),
               data("scale"),
               static_cast<const int8_t*>(data("zero_point")),
               reinterpret_cast<int8_t*>(workspace),
               reinterpret_cast<qcts::scalar::RowScale*>(workspace + rows_offset(*problem))};
  quantize_rows(task);
  qcts::parallel_for(problem->threads, problem->n, 1, linear_columns, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_dyn_scalar = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_LINEAR,
    .scheme = "int8_row:dyn_row_sym,dyn_row_asym",
    .variant = "scalar",
    .description =
        "integer sums of one row of x and one of the weight; bound by one dependent addition an element",
    .claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT,
    .reserved = 0,
    .numerics = {.struct_size = sizeof(qcts_numerics),
                 .x_cast = QCTS_NONE,
                 .scale_cast = QCTS_NONE,
                 .weight_cast = QCTS_NONE,
                 .product_cast = QCTS_NONE,
                 .accumulator = QCTS_I32,
                 .partial_cast = QCTS_NONE,
                 .output_cast = QCTS_NONE,
                 .flags = QCTS_NUM_SCALE_AFTER_SUM,
                 .reserved = 0},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .prepared_bytes = nullptr,
    .prepare = nullptr,
    .run = run,
};
