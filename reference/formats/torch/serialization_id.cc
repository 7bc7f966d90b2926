// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torch/serialization_id.h"

#include <cstdio>
#include <limits>

#include "reference/formats/io/byte_io.h"

namespace qcts {
namespace {

// c10/util/hash.h, hash_combine
uint64_t combine(uint64_t seed, uint64_t value) {
  return seed ^ (value + 0x9e3779b9 + (seed << 6) + (seed >> 2));
}

// Bucket counts of a set that grows by single insertions: libstdc++ doubles and takes the next prime of its
// table. Observed with g++ 12; the last one suffices for every archive that is read here.
constexpr uint64_t kBucketCounts[] = {1,      13,     29,     59,      127,    257,   541,
                                      1109,   2357,   5087,   10273,   20753,  42043, 85229,
                                      172933, 351061, 712697, 1447153, 2938679};

constexpr size_t kNobody = std::numeric_limits<size_t>::max();

// The singly linked list that a libstdc++ hash table iterates over. Each bucket knows the node before its
// first one. Node 0 precedes the list.
class SetOrder {
 public:
  explicit SetOrder(const std::vector<uint64_t>& hashes)
      : hashes_(hashes), next_(hashes.size() + 1, kNobody) {
    rehash(1);
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (i + 1 > capacity_) grow(i + 1);
      insert(i + 1);
    }
  }

  std::vector<size_t> order() const {
    std::vector<size_t> result;
    for (size_t node = next_[0]; node != kNobody; node = next_[node]) result.push_back(node - 1);
    return result;
  }

 private:
  size_t bucket_of(size_t node) const { return hashes_[node - 1] % before_.size(); }

  // Inserts a node before its bucket's first node, or before the whole list when the bucket is empty.
  void insert(size_t node) {
    size_t& before = before_[bucket_of(node)];
    if (before != kNobody) {
      next_[node] = next_[before];
      next_[before] = node;
      return;
    }
    next_[node] = next_[0];
    next_[0] = node;
    if (next_[node] != kNobody) before_[bucket_of(next_[node])] = node;
    before = 0;
  }

  void grow(size_t count) {
    for (uint64_t buckets : kBucketCounts) {
      if (buckets > before_.size() && buckets >= count) return rehash(buckets);
    }
    rehash(before_.size() * 2 + 1);
  }

  void rehash(size_t buckets) {
    size_t node = next_[0];
    before_.assign(buckets, kNobody);
    capacity_ = buckets == 1 ? 0 : buckets;  // the first insertion grows to 13
    next_[0] = kNobody;
    while (node != kNobody) {
      const size_t following = next_[node];
      insert(node);
      node = following;
    }
  }

  const std::vector<uint64_t>& hashes_;
  std::vector<size_t> next_;    // indexed by node
  std::vector<size_t> before_;  // indexed by bucket
  size_t capacity_ = 0;
};

}  // namespace

uint64_t libstdcxx_hash(std::span<const std::byte> bytes) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t value) { return value ^ (value >> 47); };
  uint64_t hash = 0xc70f6907 ^ (bytes.size() * kMultiplier);
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    hash = (hash ^ (mix(load_le<uint64_t>(bytes, at) * kMultiplier) * kMultiplier)) * kMultiplier;
  }
  if (whole < bytes.size()) {
    uint64_t tail = 0;
    for (size_t at = bytes.size(); at-- > whole;) tail = tail << 8 | std::to_integer<uint64_t>(bytes[at]);
    hash = (hash ^ tail) * kMultiplier;
  }
  return mix(mix(hash) * kMultiplier);
}

std::vector<size_t> libstdcxx_set_order(const std::vector<uint64_t>& hashes) {
  return SetOrder(hashes).order();
}

std::string serialization_id(const std::vector<IdRecord>& records) {
  uint64_t crcs = 0;
  std::vector<uint64_t> hashes;
  for (const IdRecord& record : records) {
    hashes.push_back(libstdcxx_hash(as_bytes(record.name)));
    // The stream writer takes anything that begins like a data descriptor for one, even a record's first
    // bytes.
    if (record.bytes.size() >= 8 && load_le<uint32_t>(record.bytes, 0) == 0x08074b50) {
      crcs = combine(crcs, load_le<uint32_t>(record.bytes, 4));
    }
    if (!record.bytes.empty()) crcs = combine(crcs, record.crc);
  }
  uint64_t names = 0;
  for (size_t index : libstdcxx_set_order(hashes)) names = combine(names, hashes[index]);
  char text[41];
  std::snprintf(text, sizeof text, "%020llu%020llu", static_cast<unsigned long long>(names),
                static_cast<unsigned long long>(crcs));
  return text;
}

}  // namespace qcts
