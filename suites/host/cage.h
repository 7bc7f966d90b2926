// SPDX-License-Identifier: BSD-3-Clause
// Takes from this process what a host does not need: capabilities, system calls that reach other processes,
// and writing to files. Children inherit the cage. Nothing can leave it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace qcts {

// The layers that hold and that no probe could tell. A kernel or a container may refuse any layer.
struct Cage {
  bool has_no_capabilities = false;  // and gets none by exec
  bool is_filtered = false;          // seccomp refuses system calls that reach other processes
};

enum class Isolation : uint8_t {
  required,  // a whole run fails without the floor of isolation_of()
  best,      // the cage is as good as this machine allows, and the run is judged
  off        // there is no cage, for gdb, perf and valgrind
};

// The cage that a judge wants for one provider.
struct CageRequest {
  bool is_wanted = true;
  std::filesystem::path scratch;                    // the provider may write here; must exist
  std::vector<std::filesystem::path> covered = {};  // folders of the judge that the provider finds empty
};

// Call this before the process has threads. `scratch` must exist; it becomes HOME and TMPDIR. With
// `own_shared_memory`, /dev/shm is nobody else's and may be written too. With `has_device`, the CUDA driver
// may open its devices.
Cage enter_cage(const std::filesystem::path& scratch, bool own_shared_memory, bool has_device);

// Makes this process unreadable for others of the same user: no ptrace, no /proc/PID/mem, no descriptors.
// Returns false if the kernel refuses.
bool hide_from_others();

}  // namespace qcts
