// SPDX-License-Identifier: BSD-3-Clause
// Encodes NF4 and its scalers one at a time, for the scalar variant of quantize.
#pragma once

#include <math.h>

#include "kernels/families/nf4_blocks.h"
#include "kernels/scalar/blocks.h"

namespace qcts::scalar {
namespace {

[[maybe_unused]] void quantize_nf4_blocks(const Nf4Task& task, int64_t first, int64_t last) {
  const uint32_t dtype = task.from.dtype;
  char gathered[4 * kNf4Block];
  for (int64_t block = first; block < last; ++block) {
    const char* from = nf4_run(task, block, block + 1, gathered).data;
    const float scaler = largest_of(dtype, from, kNf4Block);
    const auto code = [&](int64_t i) {
      return nf4_nearest(dtype, task.values, round_to(dtype, load(dtype, from, i) / scaler));
    };
    task.scalers[block] = scaler;
    for (int64_t i = 0; i < kNf4Block; i += 2)
      task.pairs[(block * kNf4Block + i) / 2] = static_cast<uint8_t>(code(i) << 4 | code(i + 1));
  }
}

[[maybe_unused]] int8_t nf4_scaler_code(float value) {
  if (value != value) return 0;
  const float whole = nearbyintf(value);
  return static_cast<int8_t>(whole < -128 ? -128 : whole > 127 ? 127 : whole);
}

[[maybe_unused]] void quantize_nf4_scalers(const Nf4Task& task, int64_t first, int64_t last) {
  const uint32_t dtype = task.from.dtype;
  for (int64_t block = first; block < last; ++block) {
    const float* scalers = task.scalers + block * kNf4Scalers;
    int8_t* codes = task.scaler_codes + block * kNf4Scalers;
    float centred[kNf4Scalers];
    for (int64_t i = 0; i < kNf4Scalers; ++i) centred[i] = round_to(dtype, scalers[i] - task.mean);
    const float largest = largest_of(QCTS_F32, reinterpret_cast<const char*>(centred), kNf4Scalers);
    // torch computes 256 / t as t.reciprocal() * 256.
    const float factor = round_to(dtype, round_to(dtype, 1 / round_to(dtype, 2 * largest)) * 256);
    store(dtype, task.factors, block, factor);
    for (int64_t i = 0; i < kNf4Scalers; ++i)
      codes[i] = nf4_scaler_code(round_to(dtype, centred[i] * factor));
  }
}

[[maybe_unused]] void quantize_nf4_problem(const qcts_problem* p) {
  quantize_nf4(*p, quantize_nf4_blocks, quantize_nf4_scalers);
}

}  // namespace
}  // namespace qcts::scalar
