// 8da4w: y = sx * sum over groups of sw * sum((qx - zx) * (qw - zw)) + bias. x is quantized into the
// workspace, one scale a row, every step rounded to x's dtype; sums of a group are integers and exact, the
// rest is in double.
#include "kernels/entry.h"
#include "kernels/scalar_int8.h"

namespace {

struct IntxTask {
  const qcts_problem* problem;
  int8_t* codes;                 // [m, k]
  qcts::scalar::RowScale* rows;  // [m]
};

uint64_t intx_rows_offset(const qcts_problem& p) { return (static_cast<uint64_t>(p.m * p.k) + 63) / 64 * 64; }
uint64_t intx_workspace_bytes(const qcts_problem* p) {
  return intx_rows_offset(*p) + static_cast<uint64_t>(p->m) * sizeof(qcts::scalar::RowScale);
}

void intx_columns(void* context, int64_t first, int64_t last) {
  const IntxTask& task = *static_cast<const IntxTask*>(context);
  const qcts_problem& p = *task.problem;
  const auto* weights = static_cast<const int8_t*>(qcts::in_plane(p, "qdata"));
  const auto* zero_points = static_cast<const int8_t*>(qcts::in_plane(p, "zero_point"));
  const uint32_t scale_dtype = qcts::plane_dtype(p.planes, p.n_planes, "scale");
  const int64_t group = p.group != 0 ? p.group : p.k;
  for (int64_t m = 0; m < p.m; ++m) {
    const qcts::scalar::RowScale x = task.rows[m];
    for (int64_t n = first; n < last; ++n) {
      double value = 0;
      for (int64_t g = 0; g < p.k / group; ++g) {
        const int64_t at = n * (p.k / group) + g;
        int64_t sum = 0;
        for (int64_t k = g * group; k < (g + 1) * group; ++k)
          sum += (task.codes[m * p.k + k] - x.zero_point) * (weights[n * p.k + k] - zero_points[at]);
        value += static_cast<double>(sum) * qcts::scalar::load(scale_dtype, qcts::in_plane(p, "scale"), at);
      }
      value *= x.scale;
      if (p.bias != nullptr) value += qcts::scalar::load(p.bias_dtype, p.bias, n);
      qcts::scalar::store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n, value);
    }
  }
}

qcts_problem intx_weight_only(const qcts_problem& problem) {
  qcts_problem copy = problem;
  copy.activation = "weight_only";
  return copy;
}

qcts_status intx_supports(const qcts_problem* problem, char* why, size_t why_size) {
  if (problem->activation == nullptr || std::strcmp(problem->activation, "dyn_token_asym") != 0)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy %s", problem->activation);
  const qcts_problem copy = intx_weight_only(*problem);
  return qcts::check_problem(qcts_kernel_linear_intx_dyn_scalar, &copy, why, why_size);
}

qcts_status intx_run(const qcts_problem* problem) {
  const qcts_problem copy = intx_weight_only(*problem);
  if (intx_supports(problem, nullptr, 0) != QCTS_OK ||
      qcts::check_run(qcts_kernel_linear_intx_dyn_scalar, &copy) != QCTS_OK)
    return QCTS_INVALID;
  char* workspace = static_cast<char*>(copy.workspace);
  IntxTask task = {&copy, reinterpret_cast<int8_t*>(workspace),
                   reinterpret_cast<qcts::scalar::RowScale*>(workspace + intx_rows_offset(copy))};
  for (int64_t m = 0; m < copy.m; ++m)
    task.rows[m] = qcts::scalar::quantize_token(
        copy.x_dtype, static_cast<const char*>(copy.x) + m * copy.ldx_bytes, copy.k, task.codes + m * copy.k);
  qcts::parallel_for(copy.threads, copy.n, 1, intx_columns, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_intx_dyn_scalar = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_LINEAR,
    .scheme = "intx:dyn_token_asym",
    .variant = "scalar",
    .description =
        "integer sums of a row of x and a group of the weight; bound by one dependent addition an element",
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
    .supports = intx_supports,
    .workspace_bytes = intx_workspace_bytes,
    .prepared_bytes = nullptr,
    .prepare = nullptr,
    .run = intx_run,
};
