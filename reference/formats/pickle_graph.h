// Walks over the graph of a pickle. All are iterative and visit a shared node once.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "reference/formats/pickle.h"

namespace qcts::pickle {

// Longest path that is read or written, whatever the limits say: writing and destroying a graph recurse.
inline constexpr uint64_t kDeepestGraph = 1024;

// Throws Refused: PickleType when `root` reaches itself, LimitExceeded when a path from it is longer than
// `depth` nodes.
void check_graph(const Ref& root, uint64_t depth);

// References of a node, in the order in which the writer emits them.
template <typename Visit>
void for_each_child(const Node& node, Visit&& visit) {
  for (const Ref& item : node.items) visit(item);
  for (const Ref& item : node.appended) visit(item);
  for (const auto& [key, value] : node.pairs) {
    visit(key);
    visit(value);
  }
  if (node.state != nullptr) visit(node.state);
}

// visit(const Ref&) for every distinct node that `root` reaches, in the order of the first reference to each.
template <typename Visit>
void for_each_node(const Ref& root, Visit&& visit) {
  std::unordered_set<const Node*> seen;
  std::vector<const Ref*> pending{&root};
  std::vector<const Ref*> children;
  while (!pending.empty()) {
    const Ref* ref = pending.back();
    pending.pop_back();
    if (!seen.insert(ref->get()).second) continue;
    visit(*ref);
    children.clear();
    for_each_child(**ref, [&](const Ref& child) { children.push_back(&child); });
    pending.insert(pending.end(), children.rbegin(), children.rend());
  }
}

}  // namespace qcts::pickle
