// SPDX-License-Identifier: BSD-3-Clause
// Finds the dense baseline for a worker's latency cases.
// Searches the worker's own provider first, then the plug-ins next to the program.
// The baseline is loaded into the same process, so that both are timed in the same rounds.
#pragma once

#include "kernels/registry.h"

namespace qcts {

class Baseline {
 public:
  // Returns `own` if it has a dense linear.
  // Otherwise returns a registry with the first plug-in that has one, which is loaded at the first call.
  // Returns nullptr if there is none. Skips plug-ins that fail to load.
  // Restores the floating-point control state if loading changes it.
  const Registry* find(const Registry& own);

 private:
  Registry plugins_;
  bool searched_ = false;
};

}  // namespace qcts
