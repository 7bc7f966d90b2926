// SPDX-License-Identifier: BSD-3-Clause
// Tries what published cheats do, from inside a cage, before the provider is there.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

#include "suites/host/cage.h"

namespace qcts {

// What each text of isolation_of() begins with if the floor is not reached.
inline constexpr const char* kNotIsolated = "not isolated";

// Says in one line what a provider in this process could still do to its judge: "isolated",
// "isolated, but it can read files", or "not isolated: it can write the judge's memory". The floor of
// "isolated": no capabilities, system calls filtered, the judge's memory and descriptors out of reach, and
// inputs that cannot be made writable. `inputs` is the address of the window of inputs, or nullptr;
// `readable` is a file that a provider has no business with.
std::string isolation_of(const Cage& cage, pid_t judge, void* inputs, const std::filesystem::path& readable);

}  // namespace qcts
