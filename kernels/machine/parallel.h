// SPDX-License-Identifier: BSD-3-Clause
// Work of kernels on several threads.
#pragma once

#include <cstdint>

namespace qcts {

// Calls body(context, first, last) on disjoint ranges that cover [0, count): at most `threads` of them, cut
// at multiples of `grain`. The cut depends on the three numbers alone. Runs in the caller alone when the pool
// is busy.
void parallel_for(uint32_t threads, int64_t count, int64_t grain,
                  void (*body)(void* context, int64_t first, int64_t last), void* context);

}  // namespace qcts
