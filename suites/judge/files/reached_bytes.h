// SPDX-License-Identifier: BSD-3-Clause
// Counts the storage bytes that a file's tensors reach. A slice that was saved keeps its whole storage.
#pragma once

#include <cstdint>
#include <map>

#include "reference/formats/tensor.h"

namespace qcts {

class ReachedBytes {
 public:
  // Adds the bytes of the tensor's elements, and returns how many of them no earlier tensor reached.
  uint64_t add(const Tensor& tensor);
  // Adds the whole storage.
  uint64_t add_whole(const Storage& storage);
  // Returns the number of bytes of the storage that were added.
  uint64_t reached(const Storage& storage) const;

 private:
  // Disjoint intervals that do not touch. Each maps its begin to its end.
  using Intervals = std::map<uint64_t, uint64_t>;
  static uint64_t insert(Intervals& intervals, uint64_t begin, uint64_t end);

  std::map<const Storage*, Intervals> storages_;
};

}  // namespace qcts
