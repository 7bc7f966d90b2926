// SPDX-License-Identifier: BSD-3-Clause
// Takes from this process what a host does not need: capabilities, system calls that reach other processes,
// and writing to files. Children inherit the cage. Nothing can leave it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qcts {

// What holds a host. Each layer is tried by itself; a kernel or a container may refuse any of them.
struct Cage {
  bool has_no_capabilities = false;  // also without new privileges by exec
  bool is_filtered = false;          // seccomp refuses the calls of cage_calls()
  bool writes_confined = false;      // Landlock: files are written in the scratch folder alone
  bool signals_confined = false;     // Landlock: no signal to a process outside, since Linux 6.12
};

// A system call that a host may not make, and why.
struct RefusedCall {
  long number;
  const char *name, *reason;
};
const std::vector<RefusedCall>& refused_calls();

// Call this before the process has threads. `scratch` must exist; it becomes HOME and TMPDIR.
Cage enter_cage(const std::filesystem::path& scratch);

// Makes this process unreadable for others of the same user: no ptrace, no /proc/PID/mem, no descriptors.
// Returns false if the kernel refuses.
bool hide_from_others();

}  // namespace qcts
