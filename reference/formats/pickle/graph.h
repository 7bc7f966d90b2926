// SPDX-License-Identifier: BSD-3-Clause
// Walks over the graph of a pickle. A shared node is visited once. They recurse, as writing and destroying a
// graph does: what is read is at most kDeepestGraph deep.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Longest path that is read or written, whatever the limits say: walking, writing and destroying a graph
// recurse.
inline constexpr uint64_t kDeepestGraph = 1024;

// A value for each node that a walk has met. Open addressing at half load: a walk over a file of 70,000
// tensors is little else than this table.
template <typename Value>
class NodeMap {
 public:
  // The node's value, and whether the node is new; valid until the next insertion.
  std::pair<Value*, bool> insert(const Node* node) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = find(node);
    const bool fresh = slot.node == nullptr;
    slot.node = node;
    count_ += fresh;
    return {&slot.value, fresh};
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    [[no_unique_address]] Value value{};
  };

  Slot& find(const Node* node) {
    // Fibonacci hashing: the high bits of a product with 2^64 divided by the golden ratio
    size_t at = (reinterpret_cast<uintptr_t>(node) * uint64_t{0x9e3779b97f4a7c15}) >> shift_;
    while (slots_[at].node != nullptr && slots_[at].node != node) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    shift_ = 64;
    for (size_t size = slots_.size(); size > 1; size /= 2) --shift_;
    for (Slot& slot : old)
      if (slot.node != nullptr) find(slot.node) = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
  int shift_ = 64;
};

// References of a node, in the order in which the writer emits them.
template <typename Visit>
void for_each_child(const Node& node, Visit&& visit) {
  for (const Ref& item : node.items) visit(item);
  for (const auto& [key, value] : node.pairs) {
    visit(key);
    visit(value);
  }
  if (node.state != nullptr) visit(node.state);
}

template <typename Visit, bool kLeaves>
class Walk {
 public:
  explicit Walk(Visit& visit) : visit_(visit) {}
  void operator()(const Ref& ref) {
    if (!ref->is_single() && !seen_.insert(ref.get()).second) return;
    visit_(ref);
    for_each_child(*ref, [this](const Ref& child) {
      if (kLeaves || !child->is_leaf()) (*this)(child);
    });
  }

 private:
  struct Nothing {};

  Visit& visit_;
  NodeMap<Nothing> seen_;  // of those with several references
};

// visit(const Ref&) for every distinct node that `root` reaches, in the order of the first reference to each.
template <typename Visit>
void for_each_node(const Ref& root, Visit&& visit) {
  Walk<std::remove_reference_t<Visit>, true> walk(visit);
  walk(root);
}

// The same for `root` and the nodes that hold others: calls, persistent ids, and containers that are not
// empty. Most references lead to leaves.
template <typename Visit>
void for_each_holder(const Ref& root, Visit&& visit) {
  Walk<std::remove_reference_t<Visit>, false> walk(visit);
  walk(root);
}

}  // namespace qcts::pickle
