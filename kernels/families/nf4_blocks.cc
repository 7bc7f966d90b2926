// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/nf4_blocks.h"

#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/elements.h"
#include "kernels/machine/parallel.h"

namespace qcts {
namespace {

float distance(uint32_t dtype, float value, float other) {
  return __builtin_fabsf(scalar::round_to(dtype, value - other));
}

int64_t blocks_of(const qcts_problem& p) { return p.n * p.k / kNf4Block; }

Nf4Task nf4_task(const qcts_problem& p) {
  const auto plane = [&](const char* name) { return plane_data(p.out_planes, p.n_out_planes, name); };
  Nf4Task task = {};
  task.from = float_rows(p);
  task.k = p.k;
  task.pairs = static_cast<uint8_t*>(plane("quantized_data"));
  task.scalers = static_cast<float*>(p.workspace);
  task.factors = static_cast<char*>(plane("quantization_factor"));
  task.scaler_codes = static_cast<int8_t*>(plane("quantized_scalers"));
  for (int code = 0; code < 16; ++code) {
    task.values[code] = scalar::round_to(task.from.dtype, kNf4Values[code]);
    scalar::store(task.from.dtype, plane("nf4"), code, kNf4Values[code]);
  }
  return task;
}

// True if all sums of several of these scalers, none of them negative, fit into the fraction of a double, so
// that their order does not matter. The unit of the smallest scaler is at least 2^-24 of it, and divides all
// others. (A NaN makes all sums NaN.)
bool sums_are_exact(const float* scalers, int64_t count) {
  float min[4] = {1e38f, 1e38f, 1e38f, 1e38f}, max[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < count; i += 4)
    for (int lane = 0; lane < 4; ++lane) {
      const float scaler = scalers[i + lane], part = scaler > 0 ? scaler : 1e38f;
      min[lane] = part < min[lane] ? part : min[lane];
      max[lane] = scaler > max[lane] ? scaler : max[lane];
    }
  for (int lane = 1; lane < 4; ++lane) {
    min[0] = min[lane] < min[0] ? min[lane] : min[0];
    max[0] = max[lane] > max[0] ? max[lane] : max[0];
  }
  return static_cast<double>(count) * max[0] <= 0x1p29 * min[0];
}

// scalers.mean() of float32: a sum in order, in double, then one division.
float mean_of(uint32_t dtype, const float* scalers, int64_t count) {
  double sum = 0;
  if (sums_are_exact(scalers, count)) {
    double part[4] = {0, 0, 0, 0};
    for (int64_t i = 0; i < count; i += 4)
      for (int lane = 0; lane < 4; ++lane) part[lane] += scalers[i + lane];
    sum = part[0] + part[1] + part[2] + part[3];
  } else {
    for (int64_t i = 0; i < count; ++i) sum += scalers[i];
  }
  return scalar::round_to(dtype, static_cast<float>(sum) / static_cast<float>(count));
}

struct Nf4Call {
  Nf4Task task;
  Nf4Range range;
};

void call_range(void* context, int64_t first, int64_t last) {
  const Nf4Call& call = *static_cast<const Nf4Call*>(context);
  call.range(call.task, first, last);
}

}  // namespace

Nf4Run nf4_run(const Nf4Task& task, int64_t block, int64_t last, char* gathered) {
  const int64_t bytes = dtype_bytes(task.from.dtype), first = block * kNf4Block;
  const auto element = [&](int64_t index) { return task.from.row(index / task.k) + index % task.k * bytes; };
  const int64_t in_row = (task.k - first % task.k) / kNf4Block;
  if (in_row > 0) return {element(first), in_row < last - block ? in_row : last - block};
  for (int64_t i = 0; i < kNf4Block; ++i)
    std::memcpy(gathered + i * bytes, element(first + i), static_cast<size_t>(bytes));
  return {gathered, 1};
}

uint8_t nf4_nearest(uint32_t dtype, const float* values, float value) {
  uint8_t best = 0;
  for (uint8_t code = 1; code < 16; ++code)
    if (distance(dtype, value, values[code]) < distance(dtype, value, values[best])) best = code;
  return best;
}

void nf4_bounds(uint32_t dtype, const float* values, float* bounds) {
  for (int code = 0; code < 15; ++code) {
    float below = values[code], above = values[code + 1];
    for (;;) {
      const float middle = below + (above - below) / 2;
      if (middle == below || middle == above) break;
      const float value = scalar::round_to(dtype, middle);
      const bool is_above = distance(dtype, value, values[code + 1]) < distance(dtype, value, values[code]);
      (is_above ? above : below) = middle;
    }
    bounds[code] = above;
  }
}

void nf4_put_scaler(const Nf4ScalerPlanes& planes, int64_t block, void* to) {
  const uint32_t dtype = planes.dtype;
  const float factor = scalar::load(dtype, planes.factors, block / kNf4Scalers);
  const float centred = scalar::round_to(dtype, static_cast<float>(planes.codes[block]) / factor);
  scalar::store(dtype, to, 0, centred + scalar::load(dtype, planes.mean, 0));
}

uint64_t nf4_workspace_bytes(const qcts_problem* problem) {
  return static_cast<uint64_t>(blocks_of(*problem)) * sizeof(float);
}

void quantize_nf4(const qcts_problem& p, Nf4Range blocks, Nf4Range scalers) {
  const int64_t count = blocks_of(p);
  Nf4Call call = {nf4_task(p), blocks};
  parallel_for(p.threads, count, 1, call_range, &call);
  call.task.mean = mean_of(p.w_dtype, call.task.scalers, count);
  scalar::store(p.w_dtype, plane_data(p.out_planes, p.n_out_planes, "scaler_mean"), 0, call.task.mean);
  call.range = scalers;
  parallel_for(p.threads, count / kNf4Scalers, 1, call_range, &call);
}

}  // namespace qcts
