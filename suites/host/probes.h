// SPDX-License-Identifier: BSD-3-Clause
// Tries what published cheats do, from inside a cage, before the provider is there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suites/host/cage.h"
#include "suites/host/namespaces.h"

namespace qcts {

// The beginning of isolation_of() if the floor is not reached.
inline constexpr const char* kNotIsolated = "not isolated";
// Added after kNotIsolated if the floor was not required.
inline constexpr const char* kAsAsked = ", as was asked";

// Describes in one line what a provider in this process could still do to its judge: "isolated",
// "isolated, but it can read the goldens", or "not isolated: it can write the judge's memory". The floor of
// "isolated": no capabilities, system calls filtered, the judge's memory and descriptors out of reach, and
// inputs that cannot be made writable. `inputs` is the address of the window of inputs, or nullptr;
// `covered` are the judge's folders, in which a provider has no business.
std::string isolation_of(const Cage& cage, const Namespaces& namespaces, void* inputs,
                         const std::vector<std::filesystem::path>& covered);

}  // namespace qcts
