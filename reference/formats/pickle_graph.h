// Walks over the graph of a pickle. All are iterative and visit a shared node once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "reference/formats/pickle.h"

namespace qcts::pickle {

// Longest path that is read or written, whatever the limits say: writing and destroying a graph recurse.
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

// visit(const Ref&) for every distinct node that `root` reaches, in the order of the first reference to each.
// Only nodes with several references are remembered.
template <typename Visit>
void for_each_node(const Ref& root, Visit&& visit) {
  struct Nothing {};
  NodeMap<Nothing> seen;
  std::vector<const Ref*> pending{&root};
  std::vector<const Ref*> children;
  while (!pending.empty()) {
    const Ref* ref = pending.back();
    pending.pop_back();
    if (!(*ref)->is_single() && !seen.insert(ref->get()).second) continue;
    visit(*ref);
    children.clear();
    for_each_child(**ref, [&](const Ref& child) { children.push_back(&child); });
    pending.insert(pending.end(), children.rbegin(), children.rend());
  }
}

}  // namespace qcts::pickle
