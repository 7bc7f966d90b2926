// SPDX-License-Identifier: BSD-3-Clause
// Inflates deflated data (RFC 1951).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qcts {

// Inflates `stored`, which must yield exactly `bytes` bytes and be used up. Throws Refused (ZipStructure)
// otherwise; a size that deflate cannot reach is refused before anything is allocated. `what` and `offset`
// name the record in the refusal.
std::vector<std::byte> inflate(std::span<const std::byte> stored, uint64_t bytes, const std::string& what,
                               uint64_t offset);

}  // namespace qcts
