// SPDX-License-Identifier: BSD-3-Clause
// The hash of an answer, by which a later run shows that a kernel still gives the same bits.
#pragma once

#include <string>

#include "suites/providers/kernel_run.h"

namespace qcts {

// Returns the first 64 bits, in hexadecimal, of the SHA-256 over y, or over name, dtype, shape and bytes of
// each plane in the ABI's order. Any NaN counts as the one that encode_float() writes. The answer is the
// judge's own copy of the first call's outputs, in dense and aligned buffers.
//
// Returns "" for an answer that may differ from run to run even if the kernel is right, for example by the
// order of threads within a bound: that of a linear, or of a quantization by a recipe with forgiven blocks
// (reference/schemes/choices/other_recipes.h), unless the kernel has QCTS_CLAIM_DETERMINISTIC. All other
// answers are compared bit for bit with the expected one. Problems without rows and weights beyond 2^32 bytes
// of codes have no hash either.
std::string output_hash(const qcts_kernel& kernel, const KernelInput& input, const KernelAnswer& answer);

}  // namespace qcts
