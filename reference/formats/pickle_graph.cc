#include "reference/formats/pickle_graph.h"

#include <algorithm>
#include <unordered_map>

namespace qcts::pickle {

void check_graph(const Ref& root, uint64_t depth) {
  struct Frame {
    const Node* node;
    bool leaving;
  };
  std::unordered_map<const Node*, uint64_t> heights;  // 0 while the node is on the current path
  std::vector<Frame> pending{{root.get(), false}};
  while (!pending.empty()) {
    const Frame frame = pending.back();
    pending.pop_back();
    if (frame.leaving) {
      uint64_t height = 0;
      for_each_child(*frame.node, [&](const Ref& child) { height = std::max(height, heights[child.get()]); });
      if (height >= depth) {
        refuse(RefusalClass::LimitExceeded,
               "data.pkl: values are nested deeper than " + std::to_string(depth), frame.node->offset);
      }
      heights[frame.node] = height + 1;
      continue;
    }
    const auto [entry, fresh] = heights.try_emplace(frame.node, 0);
    if (!fresh) {
      if (entry->second != 0) continue;
      refuse(RefusalClass::PickleType, "data.pkl: a value contains itself", frame.node->offset);
    }
    pending.push_back({frame.node, true});
    for_each_child(*frame.node, [&](const Ref& child) { pending.push_back({child.get(), false}); });
  }
}

}  // namespace qcts::pickle
