// SPDX-License-Identifier: BSD-3-Clause
// Puts a host into its own namespaces: for users, processes, mounts, System V objects and networks.
#pragma once

#include <filesystem>
#include <vector>

#include <sys/types.h>

namespace qcts {

struct Namespaces {
  pid_t judge = 0;       // as the processes outside number it
  bool are_own = false;  // all five, with a /proc and a /dev/shm that show nothing of what is outside
};

// Call this before the process has threads. Returns in the process that goes on as the host.
// With namespaces, that is a grandchild. The caller stays behind as the launcher, which ends as the host
// ends. The launcher's child is the namespaces' init, which reaps. All of them end with the judge. Without
// the right to make namespaces, or to mount a /proc in them, the caller itself goes on, unchanged. The
// folders `covered` are empty in the namespaces, except for those that hold one of `needed`.
Namespaces enter_namespaces(const std::vector<std::filesystem::path>& covered,
                            const std::vector<std::filesystem::path>& needed);

}  // namespace qcts
