// SPDX-License-Identifier: BSD-3-Clause
// Makes reference/schemes available through the kernel ABI, so that schemes without a kernel are judged too.
// Its linear sums in double and rounds once. It only runs on goldens: elsewhere it would be compared with
// itself.
#pragma once

#include "kernels/registry.h"

namespace qcts {

inline constexpr const char* kReferenceProvider = "reference";

// Implements every operation for every family of schemes(), as variant "scalar".
const qcts_provider& reference_provider();

}  // namespace qcts
