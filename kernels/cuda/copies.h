// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous copies from global to shared memory (cp.async, sm_80 and later). A thread issues copies, and
// commits those since its last commit as one group. It can wait until at most a given number of its groups
// are unfinished. Other threads see the bytes after a sync_block() that follows the wait.
#pragma once

#include "kernels/cuda/device.h"

namespace qcts::device {
namespace {

// kBytes is 4, 8 or 16, and both addresses are multiples of it. If `valid` is false, zeros are stored and
// nothing is read, so `from` need not point to memory.
template <int kBytes>
QCTS_DEVICE void copy_async(void* shared, const void* from, bool valid = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
#if defined(__CUDACC__)
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint32_t bytes = valid ? kBytes : 0;
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
#else
  simt::copy_async(shared, from, kBytes, valid);
#endif
}

// Copies 16 bytes if `taken` is true, without a branch: otherwise nothing is stored.
QCTS_DEVICE void copy_async_if(bool taken, void* shared, const void* from, bool valid) {
#if defined(__CUDACC__)
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint32_t bytes = valid ? 16 : 0;
  asm volatile(
      "{ .reg .pred taken; setp.ne.u32 taken, %3, 0; "
      "@taken cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2; }" ::"r"(to),
      "l"(from), "r"(bytes), "r"(static_cast<uint32_t>(taken))
      : "memory");
#else
  if (taken) simt::copy_async(shared, from, 16, valid);
#endif
}

// Returns the policy of copy_async_once(): L2 gives up the bytes before others.
QCTS_DEVICE uint64_t evict_first() {
#if defined(__CUDACC__)
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
#else
  return 0;
#endif
}
// Copies 16 bytes that are used once, as weights are.
QCTS_DEVICE void copy_async_once(void* shared, const void* from, [[maybe_unused]] uint64_t policy,
                                 bool valid = true) {
#if defined(__CUDACC__)
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint32_t bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to),
               "l"(from), "r"(bytes), "l"(policy)
               : "memory");
#else
  simt::copy_async(shared, from, 16, valid);
#endif
}

QCTS_DEVICE void commit_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  simt::commit_copies();
#endif
}

template <int kUnfinished>
QCTS_DEVICE void wait_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kUnfinished) : "memory");
#else
  simt::wait_copies(kUnfinished);
#endif
}

}  // namespace
}  // namespace qcts::device
