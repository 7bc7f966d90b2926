// SPDX-License-Identifier: BSD-3-Clause
// Barriers in shared memory, and copies of tensor boxes that complete on them (mbarrier,
// cp.async.bulk.tensor; compute capability 9.0; PTX ISA 8.7, sections 9.7.13.15 and 9.7.9.27).
//
// A barrier is made for a number of arrivals. A phase ends when that many threads have arrived and all bytes
// that they expect have come. Phases count from 0. One thread makes the barriers of a block and calls
// fence_barriers(). Then all threads meet in sync_block().
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/tensor_map.h"

namespace qcts::device {
namespace {

#if defined(__CUDACC__)
QCTS_DEVICE uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
#endif

QCTS_DEVICE void make_barrier(uint64_t* barrier, uint32_t arrivals) {
#if defined(__CUDACC__)
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
#else
  simt::make_barrier(barrier, arrivals);
#endif
}

// Lets copies see the barriers that the calling thread has made.
QCTS_DEVICE void fence_barriers() {
#if defined(__CUDACC__)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  simt::fence_barriers();
#endif
}

// Lets copies and wgmma see the calling thread's stores to shared memory, which they read another way.
QCTS_DEVICE void fence_async() {
#if defined(__CUDACC__)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  simt::fence_async();
#endif
}

QCTS_DEVICE void arrive(uint64_t* barrier) {
#if defined(__CUDACC__)
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  simt::arrive(barrier, 0);
#endif
}

// Arrives. The phase then also waits for `bytes` bytes.
QCTS_DEVICE void arrive_expecting(uint64_t* barrier, uint32_t bytes) {
#if defined(__CUDACC__)
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
#else
  simt::arrive(barrier, bytes);
#endif
}

// Waits for the end of the phase whose number is even (parity 0) or odd (parity 1). That phase is the current
// one or the one before it.
QCTS_DEVICE void wait_barrier(uint64_t* barrier, uint32_t parity) {
#if defined(__CUDACC__)
  asm volatile(
      "{\n"
      ".reg .pred ended;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@!ended bra again_%=;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#else
  simt::wait_barrier(barrier, parity);
#endif
}

// Copies the box that begins at (column, row) of the map's tensor to shared memory, at a multiple of 1024
// bytes. Elements outside the tensor become zeros. The column counts elements and must be at a multiple of 16
// bytes: a GPU reports any other as an illegal instruction. The bytes count on the barrier. One thread calls
// it.
QCTS_DEVICE void copy_box(void* shared, const TensorMap* map, int32_t column, int32_t row,
                          uint64_t* barrier) {
#if defined(__CUDACC__)
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
#else
  simt::copy_box(shared, *map, column, row, barrier);
#endif
}

}  // namespace
}  // namespace qcts::device
