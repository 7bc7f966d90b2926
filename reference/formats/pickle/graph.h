// SPDX-License-Identifier: BSD-3-Clause
// Walks over a pickle's graph that visit each shared node once.
// Walks recurse, as writing and destroying a graph do, so a graph has a depth of at most kMaxGraphDepth.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// The longest path that is read or written, whatever Limits says.
// The path is limited because walking, writing and destroying a graph recurse.
inline constexpr uint64_t kMaxGraphDepth = 1024;

// Maps the nodes that a walk has met to values. Uses open addressing at half load.
// A walk over a file of 70,000 tensors spends nearly all of its time in this table.
template <typename Value>
class NodeMap {
 public:
  // Returns a pointer to the node's value, valid until the next insertion, and whether the node is new.
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
    // Fibonacci hashing: takes the high bits of the product with 2^64 divided by the golden ratio.
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

// Visits a node's references in the order in which the writer emits them.
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
  NodeMap<Nothing> seen_;  // nodes with several references
};

// Calls visit(const Ref&) for every distinct node reachable from `root`, in the order of first references.
template <typename Visit>
void for_each_node(const Ref& root, Visit&& visit) {
  Walk<std::remove_reference_t<Visit>, true> walk(visit);
  walk(root);
}

// Visits only `root` and the nodes that hold others: calls, persistent ids and non-empty containers.
// for_each_holder() is faster than for_each_node(), because most references lead to leaves.
template <typename Visit>
void for_each_holder(const Ref& root, Visit&& visit) {
  Walk<std::remove_reference_t<Visit>, false> walk(visit);
  walk(root);
}

}  // namespace qcts::pickle
