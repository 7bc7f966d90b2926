// SPDX-License-Identifier: BSD-3-Clause
// Inflates data that was compressed with deflate (RFC 1951).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qcts {

// Inflates `stored`, which must give exactly `bytes` bytes and leave no input over.
// Throws Refused (ZipStructure) otherwise.
// A size that deflate cannot reach is refused before any memory is allocated.
// `what` and `offset` name the record in the refusal.
std::vector<std::byte> inflate(std::span<const std::byte> stored, uint64_t bytes, const std::string& what,
                               uint64_t offset);

}  // namespace qcts
