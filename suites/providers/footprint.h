// SPDX-License-Identifier: BSD-3-Clause
// Memory, descriptors, threads and processors of a kernel's process, as the system reports them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

struct Footprint {
  uint64_t private_bytes = 0;                // resident memory that is not shared with the judge
  uint64_t descriptors = 0;                  // open
  std::map<pid_t, uint64_t> thread_ns = {};  // CPU time of each thread, as far as the system gives it
  uint64_t ended_ns = 0;                     // of all threads that have ended
  uint64_t said_bytes = 0;    // written to its standard output and error, and by the judge's own process
  bool has_our_cores = true;  // its first thread may use the processors that this process may use
};

// Returns nullopt where the system does not report them.
std::optional<Footprint> footprint_of(pid_t process);
// The same of the kernel's host; nullopt for a kernel of this process or of a program.
std::optional<Footprint> provider_footprint(const qcts_kernel& kernel);

// Returns what `calls` calls of one thread between each two of `seen` left behind, or "". Counts only what
// every span added, since a cache may fill once: at least 768 bytes, a quarter of a descriptor or of a
// thread, or a byte of output per call, or 5 us of work in threads that ended or in one other than the
// busiest.
std::string side_effect(std::span<const Footprint> seen, uint64_t calls);

}  // namespace qcts
