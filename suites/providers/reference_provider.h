// SPDX-License-Identifier: BSD-3-Clause
// Makes reference/schemes available through the kernel ABI, so that schemes without a kernel are judged too.
// The linear of this provider sums in double and rounds once.
// The provider runs only on goldens, because on other inputs it would be compared with itself.
#pragma once

#include "kernels/registry.h"

namespace qcts {

inline constexpr const char* kReferenceProvider = "reference";

// Returns the provider that implements every operation for every family of schemes(), as variant "scalar".
const qcts_provider& reference_provider();

}  // namespace qcts
