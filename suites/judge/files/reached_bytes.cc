// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/files/reached_bytes.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace qcts {
namespace {

struct Dimension {
  int64_t size = 0, stride = 0;
};

// Returns the dimensions by falling stride, without those that add no element.
std::vector<Dimension> by_stride(const Tensor& tensor) {
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] > 1 && tensor.stride[d] != 0)
      dimensions.push_back({tensor.shape[d], tensor.stride[d]});
  std::ranges::sort(dimensions, std::greater{}, &Dimension::stride);
  return dimensions;
}

}  // namespace

uint64_t ReachedBytes::insert(Intervals& intervals, uint64_t begin, uint64_t end) {
  if (begin >= end) return 0;
  uint64_t fresh = end - begin, merged_begin = begin, merged_end = end;
  auto next = intervals.upper_bound(begin);
  if (next != intervals.begin() && std::prev(next)->second >= begin) --next;
  while (next != intervals.end() && next->first <= end) {
    const uint64_t both_begin = std::max(begin, next->first), both_end = std::min(end, next->second);
    fresh -= both_end - both_begin;
    merged_begin = std::min(merged_begin, next->first);
    merged_end = std::max(merged_end, next->second);
    next = intervals.erase(next);
  }
  intervals.emplace_hint(next, merged_begin, merged_end);
  return fresh;
}

uint64_t ReachedBytes::add(const Tensor& tensor) {
  if (tensor.storage == nullptr || tensor.numel() == 0) return 0;
  Intervals& intervals = storages_[tensor.storage.get()];
  const uint64_t bits = dtype_bits(tensor.dtype);
  std::vector<Dimension> dimensions = by_stride(tensor);
  int64_t run = 1;  // elements in a row
  while (!dimensions.empty() && dimensions.back().stride <= run) {
    run += (dimensions.back().size - 1) * dimensions.back().stride;
    dimensions.pop_back();
  }
  uint64_t fresh = 0;
  const std::function<void(size_t, int64_t)> add_runs = [&](size_t d, int64_t first) {
    if (d == dimensions.size()) {
      const uint64_t begin = static_cast<uint64_t>(first) * bits / 8;
      fresh += insert(intervals, begin, begin + (static_cast<uint64_t>(run) * bits + 7) / 8);
      return;
    }
    for (int64_t i = 0; i < dimensions[d].size; ++i) add_runs(d + 1, first + i * dimensions[d].stride);
  };
  add_runs(0, tensor.offset_elems);
  return fresh;
}

uint64_t ReachedBytes::add_whole(const Storage& storage) {
  return insert(storages_[&storage], 0, storage.bytes.size());
}

uint64_t ReachedBytes::reached(const Storage& storage) const {
  const auto found = storages_.find(&storage);
  uint64_t bytes = 0;
  if (found != storages_.end())
    for (const auto& [begin, end] : found->second) bytes += end - begin;
  return bytes;
}

}  // namespace qcts
