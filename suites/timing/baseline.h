// SPDX-License-Identifier: BSD-3-Clause
// Finds the dense baseline for a worker's latency cases: in its own provider, otherwise in the plug-ins next
// to the program. It is loaded into the same process, so that both are timed in the same rounds.
#pragma once

#include "kernels/registry.h"

namespace qcts {

class Baseline {
 public:
  // Returns `own` if it has a dense linear, otherwise a registry with the first plug-in that has one (loaded
  // at the first call); nullptr if there is none. Plug-ins that fail to load are skipped. Restores the
  // floating-point control state if loading changes it.
  const Registry* find(const Registry& own);

 private:
  Registry plugins_;
  bool searched_ = false;
};

}  // namespace qcts
