// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/float8_scales.h"

#include <math.h>

#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/elements.h"
#include "kernels/machine/parallel.h"

namespace qcts {
namespace {

bool starts_with(const char* text, const char* part) {
  return text != nullptr && std::strncmp(text, part, std::strlen(part)) == 0;
}

// fbgemm_gpu quantize.cu, dynamicQuantizeMatrixRowwise.
bool is_fbgemm(const qcts_problem& p) {
  return p.op != QCTS_OP_QUANTIZE && p.activation != nullptr &&
         std::strcmp(p.activation, "dyn_row_fbgemm") == 0;
}

// Returns a bound, rounded as it acts: from double to float32 to dtype.
float bound_of(const qcts_problem& p, const char* name, uint32_t dtype) {
  const void* plane = plane_data(p.planes, p.n_planes, name);
  if (plane == nullptr) return NAN;
  double value;
  std::memcpy(&value, plane, sizeof value);
  return scalar::round_to(dtype, static_cast<float>(value));
}

void set_weight_blocks(const qcts_problem& p, Float8Task& task) {
  const int64_t rows = scheme_params(p).group_rows;
  task.block_rows = rows != 0 ? rows : p.n;
  task.block_cols = p.group != 0 ? p.group : p.k;
}

void set_activation(const qcts_problem& p, Float8Task& task) {
  task.block_cols = starts_with(p.activation, "dyn_block128") ? 128 : p.k;
  task.is_static = starts_with(p.activation, "static_tensor");
  task.block_rows = task.is_static || starts_with(p.activation, "dyn_tensor") ? p.m : 1;
  task.min = bound_of(p, "hp_value_lb", task.scale_dtype);
  task.max = bound_of(p, "hp_value_ub", task.scale_dtype);
  if (!is_fbgemm(p)) return;
  if (const void* bound = plane_data(p.planes, p.n_planes, "activation_scale_ub"))
    std::memcpy(&task.max, bound, 4);
  task.least = 1.0f / (448.0f * 512.0f);
}

struct Float8Call {
  Float8Task task;
  Float8Bands bands;
};

void call_bands(void* context, int64_t first, int64_t last) {
  const Float8Call& call = *static_cast<const Float8Call*>(context);
  call.bands(call.task, first, last);
}

}  // namespace

Float8Task float8_task(const qcts_problem& p) {
  const bool weight = p.op == QCTS_OP_QUANTIZE;
  const bool floored = weight ? p.layout != nullptr && std::strcmp(p.layout, "mslk") == 0
                              : std::strcmp(p.activation, "dyn_row_mslk") == 0;
  Float8Task task = {};
  task.from = float_rows(p);
  task.k = p.k;
  task.format = scheme_params(p).element_dtype == QCTS_F8_E5M2 ? SmallFloat::e5m2 : SmallFloat::e4m3;
  task.scale_dtype = floored || is_fbgemm(p) ? static_cast<uint32_t>(QCTS_F32) : task.from.dtype;
  task.min = task.max = NAN;
  if (weight)
    set_weight_blocks(p, task);
  else
    set_activation(p, task);
  if (floored) task.min = 1.0f / 512;
  task.codes = static_cast<uint8_t*>(plane_data(p.out_planes, p.n_out_planes, "qdata"));
  task.scales = static_cast<char*>(plane_data(p.out_planes, p.n_out_planes, "scale"));
  return task;
}

// Comparisons keep a NaN, and a bound that is NaN has no effect.
float float8_scale(const Float8Task& task, float largest) {
  if (largest < task.min) largest = task.min;
  if (largest > task.max) largest = task.max;
  const float scale =
      scalar::round_to(task.scale_dtype, largest / (task.format == SmallFloat::e4m3 ? 448.0f : 57344.0f));
  return scale < task.least ? task.least : scale;
}

void store_scale(const Float8Task& task, int64_t index, float scale) {
  std::memcpy(task.scales + 4 * index, &scale, 4);
}

float load_scale(const Float8Task& task, int64_t index) {
  float scale;
  std::memcpy(&scale, task.scales + 4 * index, 4);
  return scale;
}

uint8_t float8_code(SmallFloat format, float x, float scale) { return small_float_code(format, x / scale); }

void quantize_float8(const qcts_problem& p, Largest largest, Float8Bands bands) {
  const Float8Task task = float8_task(p);
  if (task.is_static)
    std::memcpy(task.scales, plane_data(p.planes, p.n_planes, "act_quant_scale"), 4);
  else if (task.one_scale())
    store_scale(task, 0, float8_scale(task, largest_of_all(p, largest)));
  Float8Call call = {task, bands};
  const int64_t count = task.one_scale() ? task.from.rows : task.from.rows / task.block_rows;
  parallel_for(p.threads, count, 1, call_bands, &call);
}

}  // namespace qcts
