// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/emulated/simt_fibers.h"

#include <sys/mman.h>

#include <cstring>

#include "kernels/emulated/simt.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" {
void __asan_unpoison_memory_region(void const volatile* address, size_t size);
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_bottom, size_t* old_size);
}
#endif

// Saves the registers that a call preserves, switches stacks, and restores the registers (System V ABI for
// x86-64, 3.2.1). The floating-point control words are left alone, because kernels do not change them.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".hidden qcts_simt_switch\n"
    ".globl qcts_simt_switch\n"
    ".type qcts_simt_switch, @function\n"
    "qcts_simt_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size qcts_simt_switch, .-qcts_simt_switch\n");
extern "C" void qcts_simt_switch(void** from, void* to);

namespace qcts::simt {
namespace {

constexpr uint64_t kCanary = 0x5AFEC0DE5AFEC0DEu;
constexpr size_t kSavedRegisters = 6;

struct Stacks {
  uint8_t* first = nullptr;
  size_t count = 0;
  void* pointers[kMaxThreads];
  void* launcher = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  const void* launcher_bottom = nullptr;
  size_t launcher_bytes = 0;
#endif
};
Stacks stacks;

// Returns the start of a thread's stack. The lowest stack belongs to no thread, so that thread 0 can overflow
// into it.
uint8_t* stack_of(uint32_t thread) { return stacks.first + (thread + 1) * kStackBytes; }

}  // namespace

bool make_stacks(uint32_t threads) {
  const size_t count = threads + size_t{1};
  if (count <= stacks.count) return true;
  if (stacks.first != nullptr) {
#if defined(__SANITIZE_ADDRESS__)
    // Whatever is mapped here next must not inherit the red zones of these stacks.
    __asan_unpoison_memory_region(stacks.first, stacks.count * kStackBytes);
#endif
    ::munmap(stacks.first, stacks.count * kStackBytes);
  }
  void* mapped = ::mmap(nullptr, count * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const bool made = mapped != MAP_FAILED;
  stacks.first = made ? static_cast<uint8_t*>(mapped) : nullptr;
  stacks.count = made ? count : 0;
  return made;
}

void prepare_fiber(uint32_t thread, void (*begin)()) {
  uint8_t* stack = stack_of(thread);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack, kStackBytes);
#endif
  std::memcpy(stack, &kCanary, sizeof kCanary);
  // The first switch pops the registers and returns into `begin`, which must find the stack as it is after a
  // call.
  auto* top = reinterpret_cast<void**>(stack + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(begin);
  std::memset(top - kSavedRegisters, 0, kSavedRegisters * sizeof(void*));
  stacks.pointers[thread] = top - kSavedRegisters;
}

void switch_fibers(uint32_t from, uint32_t to) {
  void** own = from == kLauncher ? &stacks.launcher : &stacks.pointers[from];
  void* other = to == kLauncher ? stacks.launcher : stacks.pointers[to];
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  if (from == kLauncher) stacks.launcher_bottom = nullptr;
  __sanitizer_start_switch_fiber(&fake, to == kLauncher ? stacks.launcher_bottom : stack_of(to),
                                 to == kLauncher ? stacks.launcher_bytes : kStackBytes);
  qcts_simt_switch(own, other);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  qcts_simt_switch(own, other);
#endif
}

void enter_fiber() {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (stacks.launcher_bottom == nullptr) {  // the first thread of a block comes from the launcher
    stacks.launcher_bottom = bottom;
    stacks.launcher_bytes = bytes;
  }
#endif
}

bool stack_is_whole(uint32_t thread) { return std::memcmp(stack_of(thread), &kCanary, sizeof kCanary) == 0; }

}  // namespace qcts::simt
