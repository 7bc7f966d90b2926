// SPDX-License-Identifier: BSD-3-Clause
// Deflated bytes (RFC 1951), whole or refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qcts {

// What `stored` inflates to: `bytes` bytes, no more and no fewer, with nothing of `stored` left over. Refuses
// ZipStructure otherwise, before anything is allocated where `bytes` is more than deflate can make of
// `stored`. `what` and `offset` name the record.
std::vector<std::byte> inflate(std::span<const std::byte> stored, uint64_t bytes, const std::string& what,
                               uint64_t offset);

}  // namespace qcts
