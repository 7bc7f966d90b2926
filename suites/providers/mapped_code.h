// SPDX-License-Identifier: BSD-3-Clause
// Lists the code that a provider's host runs: every file that it has mapped executable, other than the host
// program and the system's C and C++ runtime.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace qcts {

using MappedInode = std::pair<std::string, uint64_t>;  // a path, and the inode that was mapped

class MappedCode {
 public:
  // Returns the files that no earlier call returned. A process that has ended has none.
  std::vector<MappedInode> added(pid_t process);

 private:
  std::set<MappedInode> seen_;
};

// Returns the SHA-256 of a mapped file, or "" if it is gone, was replaced since then, or cannot be read.
std::string sha256_of(const MappedInode& file);

}  // namespace qcts
