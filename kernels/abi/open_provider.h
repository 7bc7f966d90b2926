// SPDX-License-Identifier: BSD-3-Clause
// Opens a provider's shared library.
#pragma once

#include <filesystem>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// The oldest accepted version is 0.9. From 0.9 upwards, takes_abi_version() accepts every minor version
// of this major version, because structs grow only at their ends.
inline constexpr uint32_t kOldestAbiVersion = 9;

struct OpenProvider {
  void* handle = nullptr;  // of dlopen
  const qcts_provider* table = nullptr;
};

// Opens the library with dlopen and returns its table, as the library gave it.
// The handshake offers this version first, then each older accepted version.
// Throws std::runtime_error with the reason from the loader.
OpenProvider open_provider(const std::filesystem::path& library);

}  // namespace qcts
