// SPDX-License-Identifier: BSD-3-Clause
// Opens the pages of the shared windows that a lane's request names, and closes those that it named before.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "suites/host/message.h"

namespace qcts {

class LanePages {
 public:
  // Only what changed since the lane's last request costs system calls. What the other lane uses stays open.
  void open(size_t lane, const HostRequest& request);

 private:
  void protect(const OpenPages& pages, int protection);
  // Pages stay in the process's page table when they become inaccessible.
  bool is_populated(const OpenPages& pages) const;

  std::mutex mutex_;
  std::array<std::vector<OpenPages>, kLanes> open_;  // by the lanes' last requests
  std::vector<OpenPages> populated_;
};

}  // namespace qcts
