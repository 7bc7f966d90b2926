// SPDX-License-Identifier: BSD-3-Clause
// Runs the work of kernels on several threads.
#pragma once

#include <cstdint>

namespace qcts {

// Calls body(context, first, last) on disjoint ranges that cover [0, count).
// There are at most `threads` ranges, cut at multiples of `grain`.
// The ranges depend only on threads, count and grain. If the pool is busy, the caller runs everything.
void parallel_for(uint32_t threads, int64_t count, int64_t grain,
                  void (*body)(void* context, int64_t first, int64_t last), void* context);

}  // namespace qcts
