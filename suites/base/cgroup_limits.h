// SPDX-License-Identifier: BSD-3-Clause
// The limits that the control groups of this process set: a container's share of a machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace qcts {

struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();  // processors' worth of time
  uint64_t memory_bytes = std::numeric_limits<uint64_t>::max();
};

// Returns the tightest limits of the groups that `membership` names and of those above them, for versions 1
// and 2 of the interface (cgroups(7)). `root` is where they are mounted. A file that is missing or says "max"
// sets no limit.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/sys/fs/cgroup",
                           const std::filesystem::path& membership = "/proc/self/cgroup");

// Returns how many workers run at a time by default: one for each of the `processors` that the limits allow,
// but at most four, no more than the memory has room for, and at least one.
unsigned default_jobs(const CgroupLimits& limits, unsigned processors);

}  // namespace qcts
