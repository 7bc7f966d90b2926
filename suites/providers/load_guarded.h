// SPDX-License-Identifier: BSD-3-Clause
// The only door through which a provider's shared library enters a process. Its initialisers run in dlopen
// and may change the floating-point control state, which would change every later answer.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/registry.h"

namespace qcts {

// Loads the library into `registry` and restores the control state, also where it throws what Registry::load
// throws. Returns what loading had changed, as float_control_change() says it; empty: nothing.
std::string load_guarded(Registry& registry, const std::filesystem::path& library);

}  // namespace qcts
