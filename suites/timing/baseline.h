// SPDX-License-Identifier: BSD-3-Clause
// Where a worker finds the dense baseline of its latency cases: in its own provider, else in the plug-ins
// beside the program, loaded into the same process so that both are timed in turn.
#pragma once

#include "kernels/registry.h"

namespace qcts {

class Baseline {
 public:
  // `own` when it has a dense linear; else a registry of the first plug-in that has one, loaded at the first
  // call; nullptr when none has. A plug-in that cannot be loaded counts as none; a floating-point control
  // state that loading changes is restored.
  const Registry* find(const Registry& own);

 private:
  Registry plugins_;
  bool searched_ = false;
};

}  // namespace qcts
