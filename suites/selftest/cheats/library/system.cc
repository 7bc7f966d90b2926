// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cheats/library/system.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

namespace qcts::cheats {
namespace {

struct Mapping {
  Region region;
  bool is_readable;
  std::string name;
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> all;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    unsigned long begin = 0, end = 0;
    char access[5] = {};
    int name = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %*s %n", &begin, &end, access, &name) < 3) continue;
    all.push_back({{reinterpret_cast<char*>(begin), reinterpret_cast<char*>(end)},
                   access[0] == 'r',
                   name > 0 ? line.substr(static_cast<size_t>(name)) : std::string()});
  }
  return all;
}

bool install(std::span<sock_filter> statements) {
  sock_fprog program{static_cast<unsigned short>(statements.size()), statements.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool answer_call(long call, uint32_t action) {
  std::array<sock_filter, 4> statements = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  return install(statements);
}

#if defined(__x86_64__)
using Change = void (*)(std::string&);

// A handler has no argument of its own.
Change& change_of_handler() {
  static Change change = nullptr;
  return change;
}

void take_trap(int, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  std::string text(reinterpret_cast<const char*>(registers[REG_RSI]),
                   static_cast<size_t>(registers[REG_RDX]));
  change_of_handler()(text);
  const iovec whole{text.data(), text.size()};
  registers[REG_RAX] = ::syscall(SYS_writev, registers[REG_RDI], &whole, 1);
}
#endif

}  // namespace

Region region_named(const char* name) {
  for (const Mapping& mapping : mappings())
    if (mapping.name.find(name) != mapping.name.npos) return mapping.region;
  return {};
}

void visit_memory(const std::function<void(const char* begin, const char* end)>& visit) {
  constexpr ptrdiff_t kWindowBytes = ptrdiff_t{64} << 20;
  for (const Mapping& mapping : mappings()) {
    const bool is_window = mapping.name.find("qcts-") != mapping.name.npos;
    const ptrdiff_t bytes = std::min(mapping.region.end - mapping.region.begin, kWindowBytes);
    if (is_window) {
      if (mapping.is_readable || ::mprotect(mapping.region.begin, static_cast<size_t>(bytes), PROT_READ) == 0)
        visit(mapping.region.begin, mapping.region.begin + bytes);
    } else if (mapping.is_readable && (mapping.name.empty() || mapping.name == "[heap]")) {
      visit(mapping.region.begin, mapping.region.end);
    }
  }
}

bool trap_write([[maybe_unused]] void (*change)(std::string& text)) {
#if defined(__x86_64__)
  change_of_handler() = change;
  struct sigaction action {};
  action.sa_sigaction = take_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return ::sigaction(SIGSYS, &action, nullptr) == 0 && answer_call(SYS_write, SECCOMP_RET_TRAP);
#else
  errno = ENOSYS;
  return false;
#endif
}

bool refuse_swap() { return answer_call(SYS_swapon, SECCOMP_RET_ERRNO | EPERM); }

}  // namespace qcts::cheats
