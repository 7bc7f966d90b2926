// SPDX-License-Identifier: BSD-3-Clause
// The libraries that a kernel is timed against. Each is loaded by its own host, and none by the host of
// the kernel that is judged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "suites/providers/host_registry.h"

namespace qcts {

class Peers {
 public:
  Peers(CageRequest cage, uint64_t memory_limit_bytes)
      : cage_(std::move(cage)), memory_limit_bytes_(memory_limit_bytes) {}

  // Returns a registry with a dense linear: of the library itself that is judged, if `own` has one, or else
  // of the first plug-in next to the program that has one. Its host starts at the first call. Returns `own`
  // if that has a dense linear without a library, and nullptr if there is none. Skips plug-ins that fail to
  // load.
  const Registry* dense(const Registry& own);
  // Returns a registry with LibTorch's kernels if the dense linear is LibTorch's and it has a kernel of the
  // op and the family. Returns nullptr otherwise.
  const Registry* torch(uint32_t op, std::string_view family);

 private:
  std::unique_ptr<HostRegistry> start(const std::string& library) const;

  const CageRequest cage_;
  const uint64_t memory_limit_bytes_;
  std::unique_ptr<HostRegistry> dense_, torch_;
  bool searched_ = false;
};

}  // namespace qcts
