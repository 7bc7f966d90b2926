// SPDX-License-Identifier: BSD-3-Clause
// The reference as a provider: reference/schemes behind the C ABI of kernels, so that a scheme without a
// kernel of its own is judged too. Its linear sums in double and rounds once. It is asked about goldens
// alone: elsewhere the expected answers are its own.
#pragma once

#include "kernels/registry.h"

namespace qcts {

inline constexpr const char* kReferenceProvider = "reference";

// Every operation of every family of schemes(), variant "scalar".
const qcts_provider& reference_provider();

}  // namespace qcts
