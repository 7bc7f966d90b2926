// SPDX-License-Identifier: BSD-3-Clause
// The loop of a host: loads a provider's library and computes what the judge asks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "suites/host/windows.h"

namespace qcts {

struct HostOptions {
  std::filesystem::path library;
  // Folders of the judge that the provider must not read. They are empty for it where mounts are allowed.
  std::vector<std::filesystem::path> covered;
  std::filesystem::path scratch;  // folder in which the provider may write
  uintptr_t windows = 0;          // address of the window of inputs
  size_t window_bytes = 0;        // of each window
  bool caged = true;
  std::optional<int> device = {};  // the GPU for which the provider computes; none: the host
  bool device_has_guards = false;  // DeviceLayout
  RepeatedChunk repeated = {};
  uint64_t memory_limit_bytes = 0;  // in addition to the memory after loading the provider; 0: no limit
};

// Enters the cage, loads the library, and writes a line of JSON: the provider's table and what isolates it,
// or {"error": ...}. Then serves requests (message.h) until the judge closes its end.
// Returns the exit code of the program.
int serve(const HostOptions& options);

}  // namespace qcts
