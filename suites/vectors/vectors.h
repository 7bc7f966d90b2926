// SPDX-License-Identifier: BSD-3-Clause
// Test vectors for implementations that do not link qcts: small weights, and the codes, scales and values
// that a scheme makes from them. A vector of a golden has the codes and scales that the real library wrote;
// all others have the reference's. The same vectors are made on every machine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures/golden.h"
#include "reference/schemes/scheme.h"
#include "suites/vectors/flags.h"

namespace qcts {

struct ExportedVector {
  std::string id;      // "mxfp4_floor/bf16/ties_2", unique among all vectors
  std::string hunts;   // the bug that the vector finds, one line
  std::string golden;  // "torchao_0_18_0/mxfp4_floor/x, tensor a.weight, row 3"; empty: a special input
  WeightShape shape;
  std::vector<std::byte> x;  // the weight, row-major [n, k]
  Planes planes;             // layout "plain": what quantizing x gives
  std::vector<std::byte> y;  // row-major [n, k] of the shape's dtype: what dequantizing the planes gives
  std::vector<VectorFlag> flags;

  Matrix weight() const { return {shape.dtype, shape.n, shape.k, x}; }
};

// The vectors of one scheme and one dtype of the weight.
struct VectorGroup {
  const Scheme* scheme = nullptr;
  DType dtype = DType::bfloat16;
  std::vector<ExportedVector> vectors;

  // Returns the SHA-256 of ids, inputs, codes, scales and outputs. Who agrees was measured on these bytes.
  std::string sha256() const;
};

// Returns the index of the plane that holds the codes.
size_t codes_plane_of(const Planes& planes);

// Returns the groups of a scheme: two types of the weight. Empty if the scheme does not quantize weights, or
// only large ones (blocks of 128 x 128). Throws std::runtime_error if a golden cannot be read, or if the
// reference contradicts one.
std::vector<VectorGroup> make_vectors(const Scheme& scheme, const Fixtures& fixtures);

// Returns the schemes with vectors that match one of the patterns, separated by commas, with * and ?.
// Throws UsageError, which names a pattern that matches none.
std::vector<const Scheme*> schemes_matching(std::string_view patterns);

}  // namespace qcts
