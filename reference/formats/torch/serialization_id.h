// SPDX-License-Identifier: BSD-3-Clause
// Computes the record .data/serialization_id.
// torch derives the record's 40 digits from the names and CRCs of all earlier records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qcts {

struct IdRecord {
  std::string name;  // without the archive's prefix
  std::span<const std::byte> bytes;
  uint32_t crc = 0;  // CRC-32 as written; 0 if CRCs are off
};

// Returns the id as torch 2.13 linked with libstdc++ computes it.
// The source is caffe2/serialize/inline_container.cc, writeSerializationId.
// The first 20 digits come from the names in iteration order of a std::unordered_set<std::string>.
// The other 20 digits come from the CRCs in writing order.
std::string serialization_id(const std::vector<IdRecord>& records);

// Computes libstdc++'s std::hash<std::string> on a 64-bit machine.
// The source is libsupc++/hash_bytes.cc: Murmur with the seed 0xc70f6907.
uint64_t libstdcxx_hash(std::span<const std::byte> bytes);

// Returns the order in which libstdc++'s std::unordered_set iterates over values with these hashes.
// The values are inserted one by one.
std::vector<size_t> libstdcxx_set_order(const std::vector<uint64_t>& hashes);

}  // namespace qcts
