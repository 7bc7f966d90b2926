// SPDX-License-Identifier: BSD-3-Clause
// Puts a host into namespaces of its own: of users, processes, mounts, System V objects and networks.
#pragma once

#include <filesystem>
#include <vector>

#include <sys/types.h>

namespace qcts {

struct Namespaces {
  pid_t judge = 0;       // as the processes outside number it
  bool are_own = false;  // all five, with a /proc and a /dev/shm that show nothing of what is outside
};

// Call this before the process has threads. Returns in the process that goes on as the host. If there are
// namespaces, that is a grandchild: the caller stays behind as the launcher, which ends as the host ends, and
// its child is the namespaces' init, which reaps. All end with the judge. Without the right to make
// namespaces, or to mount a /proc in them, the caller itself goes on, and nothing has changed.
// Each of the folders `covered` is empty in the namespaces.
Namespaces enter_namespaces(const std::vector<std::filesystem::path>& covered);

}  // namespace qcts
