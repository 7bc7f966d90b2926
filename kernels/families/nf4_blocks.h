// SPDX-License-Identifier: BSD-3-Clause
// NF4 weights (reference/schemes/nf4.cc). The variants use these functions once per tensor or once per block.
#pragma once

#include "kernels/families/block_scales.h"

namespace qcts {

constexpr int64_t kNf4Block = 64;     // elements that share a scaler
constexpr int64_t kNf4Scalers = 256;  // scalers that share a quantization factor

// The values of the codes. They are rounded to four decimals, unlike those of bitsandbytes.
constexpr float kNf4Values[16] = {-1.0f,   -0.6962f, -0.5251f, -0.3949f, -0.2844f, -0.1848f, -0.0911f, 0.0f,
                                  0.0796f, 0.1609f,  0.2461f,  0.3379f,  0.4407f,  0.5626f,  0.7230f,  1.0f};

// The problem's input and output. A block may continue from one row to the next.
struct Nf4Task {
  FloatRows from;
  int64_t k;
  float values[16];  // the values of the codes, in the weight's dtype
  uint8_t* pairs;    // two codes per byte; the first is in the high nibble
  float* scalers;    // in the workspace: kept between the two passes
  float mean;        // mean of the scalers; known in the second pass
  char* factors;
  int8_t* scaler_codes;
};

// Consecutive blocks, starting at `block` and ending at or before `last`. They are within one row.
// A single block that spans rows is copied to `gathered`, which has 256 bytes.
struct Nf4Run {
  const char* data;
  int64_t blocks;
};
Nf4Run nf4_run(const Nf4Task& task, int64_t block, int64_t last, char* gathered);

// Returns the code whose value is nearest to `value`, a number of dtype.
// The distance |value - values[code]| is computed in dtype.
// If two codes are equally near, returns the lower one. For NaN, returns 0.
uint8_t nf4_nearest(uint32_t dtype, const float* values, float value);

// For c < 15, bounds[c] is the smallest float that is nearer to values[c + 1] than to values[c].
// The float is rounded to the weight's dtype before it is compared. Codes grow with their values.
// So the code of an element is the number of bounds that do not exceed it.
void nf4_bounds(uint32_t dtype, const float* values, float* bounds);

// Planes of the scalers of a weight. Factors and mean have dtype; each factor serves kNf4Scalers scalers.
struct Nf4ScalerPlanes {
  uint32_t dtype;
  const int8_t* codes;
  const void *factors, *mean;
};
// Writes the scaler of a block in dtype: its code divided by its factor, rounded to dtype, plus the mean.
void nf4_put_scaler(const Nf4ScalerPlanes& planes, int64_t block, void* to);

// A function of this type writes the codes and scalers of blocks [first, last) in the first pass.
// In the second pass, another one writes the factors and codes of blocks [first, last) of scalers.
using Nf4Range = void (*)(const Nf4Task& task, int64_t first, int64_t last);

uint64_t nf4_workspace_bytes(const qcts_problem* problem);
// Quantizes the whole problem.
// Both passes use as many threads as the problem allows; the mean is computed between them.
void quantize_nf4(const qcts_problem& problem, Nf4Range blocks, Nf4Range scalers);

}  // namespace qcts
