// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/machine/parallel.h"

#include "kernels/machine/thread_pool.h"

namespace qcts {

void parallel_for(uint32_t threads, int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                  void* context) {
  ThreadPool::shared().run(threads, count, grain, body, context);
}

}  // namespace qcts
