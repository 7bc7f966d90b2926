// SPDX-License-Identifier: BSD-3-Clause
// The only way to load a provider's shared library. Its initialisers run in dlopen.
// Initialisers may change the floating-point control state, which would change every later answer.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/registry.h"

namespace qcts {

// Loads the library into `registry` and restores the control state, even if Registry::load throws.
// Returns the changes that loading made, in the form of float_control_change(), or an empty string.
std::string load_guarded(Registry& registry, const std::filesystem::path& library);

}  // namespace qcts
