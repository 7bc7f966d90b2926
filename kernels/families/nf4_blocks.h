// SPDX-License-Identifier: BSD-3-Clause
// NF4 weights (reference/schemes/nf4.cc): the work that variants do once per tensor or once per block.
#pragma once

#include "kernels/families/block_scales.h"

namespace qcts {

constexpr int64_t kNf4Block = 64;     // elements that share a scaler
constexpr int64_t kNf4Scalers = 256;  // scalers that share a quantization factor

// The problem's input and output. Blocks run on from row to row.
struct Nf4Task {
  FloatRows from;
  int64_t k;
  float values[16];  // the values of the codes, in the weight's dtype
  uint8_t* pairs;    // two codes per byte, the even one in the high nibble
  float* scalers;    // in the workspace: kept between the two passes
  float mean;        // of the scalers; known in the second pass
  char* factors;
  int8_t* scaler_codes;
};

// Consecutive blocks from `block` on, at most up to `last`: those within a row, or a single one that spans
// rows and was copied to `gathered`, which has 256 bytes.
struct Nf4Run {
  const char* data;
  int64_t blocks;
};
Nf4Run nf4_run(const Nf4Task& task, int64_t block, int64_t last, char* gathered);

// Returns the code whose value is nearest to `value`, a number of dtype: the one with the smallest |value -
// values[code]|, computed in dtype; the lower of two that are equally near; 0 for NaN.
uint8_t nf4_nearest(uint32_t dtype, const float* values, float value);

// bounds[c], for c < 15, is the smallest float that, rounded to the weight's dtype, is nearer to values[c +
// 1] than to values[c]. Codes grow with their values, so a code is the number of bounds that are not above an
// element.
void nf4_bounds(uint32_t dtype, const float* values, float* bounds);

// The planes of a weight's scalers. Factors, of which each serves kNf4Scalers scalers, and the mean have
// dtype.
struct Nf4ScalerPlanes {
  uint32_t dtype;
  const int8_t* codes;
  const void *factors, *mean;
};
// Writes the scaler of a block in dtype: its code divided by its factor, rounded to dtype, plus the mean.
void nf4_put_scaler(const Nf4ScalerPlanes& planes, int64_t block, void* to);

// The first function writes codes and scalers of blocks [first, last); the second writes factors and codes of
// blocks [first, last) of scalers.
using Nf4Range = void (*)(const Nf4Task& task, int64_t first, int64_t last);

uint64_t nf4_workspace_bytes(const qcts_problem* problem);
// Quantizes the whole problem: both passes with as many threads as it allows, and the mean between them.
void quantize_nf4(const qcts_problem& problem, Nf4Range blocks, Nf4Range scalers);

}  // namespace qcts
