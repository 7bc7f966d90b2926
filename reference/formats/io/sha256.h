// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace qcts {

// Returns the SHA-256 (FIPS 180-4) in lower-case hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace qcts
