// SPDX-License-Identifier: BSD-3-Clause
// Takes from this process what a host does not need: capabilities, system calls that reach other processes,
// and writing to files. Children inherit the cage. Nothing can leave it.
#pragma once

#include <cstdint>
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

// How a provider is started: in a cage, and not judged without the floor of isolation_of(); in a cage as good
// as this machine has; or free, for gdb, perf and valgrind.
enum class Isolation : uint8_t { required, best, off };

// What a judge asks of the cage of one provider.
struct CageRequest {
  bool is_wanted = true;
  std::filesystem::path scratch;                    // where the provider may write; must exist
  std::vector<std::filesystem::path> covered = {};  // the judge's folders, which the provider finds empty
  // Leaves out the folders that hold the provider or the scratch folder.
  std::vector<std::filesystem::path> covered_for(const std::filesystem::path& provider) const;
};

// A system call that a host may not make, and why.
struct RefusedCall {
  long number;
  const char *name, *reason;
};
const std::vector<RefusedCall>& refused_calls();

// Call this before the process has threads. `scratch` must exist; it becomes HOME and TMPDIR. With
// `own_shared_memory`, /dev/shm is nobody else's and may be written too.
Cage enter_cage(const std::filesystem::path& scratch, bool own_shared_memory);

// Makes this process unreadable for others of the same user: no ptrace, no /proc/PID/mem, no descriptors.
// Returns false if the kernel refuses.
bool hide_from_others();

}  // namespace qcts
