// SPDX-License-Identifier: BSD-3-Clause
// Runs work of kernels on several threads.
#pragma once

#include <cstdint>

namespace qcts {

// Calls body(context, first, last) on disjoint ranges that cover [0, count): at most `threads` of them, cut
// at multiples of `grain`. The cut depends only on these three numbers. If the pool is busy, the caller runs
// everything.
void parallel_for(uint32_t threads, int64_t count, int64_t grain,
                  void (*body)(void* context, int64_t first, int64_t last), void* context);

}  // namespace qcts
