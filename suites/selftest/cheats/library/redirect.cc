// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cheats/library/redirect.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace qcts::cheats {
namespace {

#if defined(__x86_64__)
// endbr64; movabs $target, %rax; jmp *%rax
std::array<unsigned char, 16> jump_to(uint64_t target) {
  std::array<unsigned char, 16> code = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xb8, 0,    0,
                                        0,    0,    0,    0,    0,    0,    0xff, 0xe0};
  std::memcpy(code.data() + 6, &target, sizeof target);
  return code;
}

bool redirect(uintptr_t from, uintptr_t to) {
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t page = from / page_bytes * page_bytes;
  if (::mprotect(reinterpret_cast<void*>(page), 2 * page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    return false;
  const auto code = jump_to(to);
  std::memcpy(reinterpret_cast<void*>(from), code.data(), code.size());
  return true;
}
#else
bool redirect(uintptr_t, uintptr_t) { return false; }
#endif

}  // namespace

bool redirect_write(WriteFunction to) {
  return redirect(reinterpret_cast<uintptr_t>(&::write), reinterpret_cast<uintptr_t>(to));
}

bool redirect_clock(ClockFunction to) {
  return redirect(reinterpret_cast<uintptr_t>(&::clock_gettime), reinterpret_cast<uintptr_t>(to));
}

}  // namespace qcts::cheats
