// SPDX-License-Identifier: BSD-3-Clause
// The record .data/serialization_id: 40 digits that torch derives from the names and CRCs of all records
// before it.
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
  uint32_t crc = 0;  // as written: 0 when CRCs are off
};

// As torch 2.13 linked with libstdc++ computes it (caffe2/serialize/inline_container.cc,
// writeSerializationId): 20 digits from the names in the iteration order of a
// std::unordered_set<std::string>, 20 from the CRCs in the order of writing.
std::string serialization_id(const std::vector<IdRecord>& records);

// std::hash<std::string> of libstdc++ on a 64-bit machine (libsupc++/hash_bytes.cc: Murmur, seed 0xc70f6907).
uint64_t libstdcxx_hash(std::span<const std::byte> bytes);

// The order in which libstdc++'s std::unordered_set iterates over values of these hashes, inserted one after
// the other.
std::vector<size_t> libstdcxx_set_order(const std::vector<uint64_t>& hashes);

}  // namespace qcts
