// SPDX-License-Identifier: BSD-3-Clause
// libqcts_fakecuda.so has the functions of the CUDA driver API that qcts calls, over memory of the host, so
// that a run on a device can be tested without a GPU: QCTS_CUDA_DRIVER=libqcts_fakecuda.so.
//
// Device memory is mapped kFakeOffset above its device addresses, where nothing is mapped: a kernel that
// touches device memory on the host faults, and the executor reads at real_place(). Streams are queues whose
// work is done only when somebody waits. An error of that work sticks, as on a GPU.
//
// The environment of a process that loads it:
//   QCTS_FAKECUDA_CAPABILITY=80        the capability, 90 by default
//   QCTS_FAKECUDA_FAULTS=cuMemCreate:3=2,launch:5=hang
//                                      the third call of cuMemCreate returns error 2, and the fifth work on a
//                                      stream never ends. `launch` with a number ends with that error.
//   QCTS_FAKECUDA_LAUNCH_US=20,35        each launch of a kernel takes at least this long: the first
//                                      20 us, the second 35, the third 20 again
//   QCTS_FAKECUDA_EVENT_US=300,310       what events report as the times between them, in turn, whatever
//                                      they were. By default, they report when the stream came to them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qcts {

inline constexpr uintptr_t kFakeOffset = uintptr_t{1} << 44;
// Device addresses are here; every other address is the host's.
inline constexpr uintptr_t kFakeFirst = uintptr_t{0x4000} << 32, kFakeEnd = kFakeFirst + (uintptr_t{1} << 42);

template <class T>
T* real_place(T* device_address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(device_address) + kFakeOffset);
}

// The library's own function, qcts_fakecuda_enqueue: appends work to a stream. run(context) returns NULL, or
// why it failed, which must live as long as the process; drop(context) follows in either case. Returns a
// CUresult.
using FakeEnqueue = int (*)(void* stream, const char* (*run)(void* context), void (*drop)(void* context),
                            void* context);
inline constexpr const char* kFakeEnqueue = "qcts_fakecuda_enqueue";

}  // namespace qcts
