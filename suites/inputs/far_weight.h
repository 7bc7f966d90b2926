// SPDX-License-Identifier: BSD-3-Clause
// Weights with more than 2^32 bytes of codes, for offsets that pass 32 bits. The codes repeat one chunk of
// memory, which is mapped again and again, so that such a weight takes 2 MiB.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "suites/inputs/synthetic.h"

namespace qcts {

// Not a power of two: an offset truncated to 32 or to 31 bits finds other codes.
inline constexpr size_t kChunkBytes = (size_t{2} << 20) + 4096;

// Returns the input of a scheme whose codes take 4 or 8 bits and whose other planes have one or no dimension
// of n; nullopt for other schemes. Its m is 1 and its policy weight_only.
std::optional<Synthetic> far_input(const Scheme& scheme);

// The data of a far input.
class FarWeight {
 public:
  FarWeight(const Scheme& scheme, const Synthetic& input, uint64_t seed);

  uint64_t code_bytes() const { return row_bytes_ * static_cast<uint64_t>(shape_.n); }
  uint64_t row_bytes() const { return row_bytes_; }
  uint64_t row_codes() const { return static_cast<uint64_t>(shape_.k); }
  const PlaneSpec& codes() const { return codes_; }
  // The bytes that the codes repeat, kChunkBytes of them.
  std::span<const std::byte> chunk() const { return chunk_; }
  const Planes& other_planes() const { return others_; }  // whole
  // One row [k] in the weight's dtype. About 60 of its elements are not zero, so that no bound of a long sum
  // hides a wrong row.
  const std::vector<std::byte>& x() const { return x_; }
  // Returns the planes of a weight with these rows of the far one.
  Planes rows(std::span<const int64_t> chosen) const;
  // Draws rows: half of them are beyond 2^32 bytes, the others anywhere. They are in ascending order.
  std::vector<int64_t> drawn_rows(size_t count, uint64_t seed) const;

 private:
  void make_others(const Planes& few, uint64_t seed);
  void make_x(uint64_t seed);

  const Scheme& scheme_;
  const WeightShape shape_;
  PlaneSpec codes_;
  uint64_t row_bytes_ = 0;
  std::vector<std::byte> chunk_, x_;
  Planes others_;
};

}  // namespace qcts
