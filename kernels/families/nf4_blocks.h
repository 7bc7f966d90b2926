// SPDX-License-Identifier: BSD-3-Clause
// NF4 weights (reference/schemes/nf4.cc): what variants do once a tensor, or once a block. Ordinary
// functions, compiled once for the baseline processor.
#pragma once

#include "kernels/families/block_scales.h"

namespace qcts {

constexpr int64_t kNf4Block = 64;     // elements of one scaler
constexpr int64_t kNf4Scalers = 256;  // scalers of one quantization factor

// What the problem reads and writes. Blocks run through rows.
struct Nf4Task {
  FloatRows from;
  int64_t k;
  float values[16];  // of the codes, in the weight's dtype
  uint8_t* pairs;    // two codes a byte, the even one high
  float* scalers;    // in the workspace: what stays of a block between the two passes
  float mean;        // of the scalers; known to the second pass
  char* factors;
  int8_t* scaler_codes;
};

// Blocks that lie side by side from `block` on, up to `last`: in a row, or one that was copied to `gathered`,
// of 256 bytes, from several.
struct Nf4Run {
  const char* data;
  int64_t blocks;
};
Nf4Run nf4_run(const Nf4Task& task, int64_t block, int64_t last, char* gathered);

// The code whose value is nearest to `value`, which is of dtype: the least |value - values[code]| as dtype
// has it, the lower of two that are equally near; 0 for NaN.
uint8_t nf4_nearest(uint32_t dtype, const float* values, float value);

// bounds[c], c < 15: the least float that, rounded to the weight's dtype, is nearer to values[c + 1] than to
// values[c]. Codes grow with what they stand for, so that a code is the number of bounds that are not above.
void nf4_bounds(uint32_t dtype, const float* values, float* bounds);

// A weight's scalers as the planes have them: of `dtype` like the factors, one for kNf4Scalers, and the mean.
struct Nf4ScalerPlanes {
  uint32_t dtype;
  const int8_t* codes;
  const void *factors, *mean;
};
// That of a block, to `to` in dtype: its code by its factor, rounded to dtype, plus the mean.
void nf4_put_scaler(const Nf4ScalerPlanes& planes, int64_t block, void* to);

// Blocks [first, last): their codes and scalers. Then blocks [first, last) of scalers: factors and codes.
using Nf4Range = void (*)(const Nf4Task& task, int64_t first, int64_t last);

uint64_t nf4_workspace_bytes(const qcts_problem* problem);
// The whole problem: both passes by as many threads as it allows, the mean in between.
void quantize_nf4(const qcts_problem& problem, Nf4Range blocks, Nf4Range scalers);

}  // namespace qcts
