// SPDX-License-Identifier: BSD-3-Clause
// Functions that code compiled by g++ -fsanitize=thread calls at each access. They replace the run-time
// library of the sanitizer. Kernels compiled in this way may touch the buffers of the problem and shared
// memory only through device.h, where each access is checked.
#include "kernels/emulated/simt.h"

namespace {

using qcts::simt::note_bare_access;
using qcts::simt::Use;

}  // namespace

extern "C" {
#define QCTS_HOOKS(bytes)                                                                          \
  void __tsan_read##bytes(void* at) { note_bare_access(at, bytes, Use::read); }                    \
  void __tsan_write##bytes(void* at) { note_bare_access(at, bytes, Use::write); }                  \
  void __tsan_unaligned_read##bytes(void* at) { note_bare_access(at, bytes, Use::read); }          \
  void __tsan_unaligned_write##bytes(void* at) { note_bare_access(at, bytes, Use::write); }        \
  void __tsan_volatile_read##bytes(void* at) { note_bare_access(at, bytes, Use::read); }           \
  void __tsan_volatile_write##bytes(void* at) { note_bare_access(at, bytes, Use::write); }         \
  void __tsan_unaligned_volatile_read##bytes(void* at) { note_bare_access(at, bytes, Use::read); } \
  void __tsan_unaligned_volatile_write##bytes(void* at) { note_bare_access(at, bytes, Use::write); }
QCTS_HOOKS(1)
QCTS_HOOKS(2)
QCTS_HOOKS(4)
QCTS_HOOKS(8)
QCTS_HOOKS(16)
#undef QCTS_HOOKS
void __tsan_read_range(void* at, unsigned long bytes) {
  note_bare_access(at, static_cast<uint32_t>(bytes), Use::read);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  note_bare_access(at, static_cast<uint32_t>(bytes), Use::write);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}
