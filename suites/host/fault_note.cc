// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/fault_note.h"

#include <array>
#include <cstdlib>

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

namespace qcts {
namespace {

// The signal handler writes the address of a forbidden access here. A handler has no argument of its own.
uint64_t* fault_note = nullptr;

constexpr int kFrames = 10;  // two of them are the handler's own

// Writes the stack to the log, the innermost call last. Neither function allocates once backtrace() has run.
void note_fault(int, siginfo_t* info, void*) {
  *fault_note = reinterpret_cast<uint64_t>(info->si_addr);
  static constexpr char kTitle[] = "the stack of the forbidden access:\n";
  std::array<void*, kFrames> frames;
  const int count = ::backtrace(frames.data(), kFrames);
  if (count <= 2 || ::write(2, kTitle, sizeof kTitle - 1) < 0) return;
  for (int i = count; i-- > 2;) ::backtrace_symbols_fd(&frames[static_cast<size_t>(i)], 1, 2);
}

}  // namespace

// The handler notes the address and returns; the access then happens again and ends the process, because the
// handler is gone. Its stack holds the state of AMX, 8 KiB, and more.
void note_forbidden_accesses(uint64_t& note) {
  fault_note = &note;
  std::array<void*, 1> own;
  ::backtrace(own.data(), 1);  // loads what it needs
  constexpr size_t kStackBytes = size_t{1} << 16;
  stack_t stack{};
  stack.ss_sp = std::malloc(kStackBytes);
  stack.ss_size = kStackBytes;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = note_fault;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace qcts
