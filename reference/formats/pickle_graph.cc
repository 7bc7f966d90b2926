#include "reference/formats/pickle_graph.h"

#include <algorithm>

namespace qcts::pickle {

void check_graph(const Ref& root, uint64_t depth) {
  struct Frame {
    const Node* node;
    bool leaving;
  };
  NodeMap<uint64_t> heights;  // 0 while the node is on the current path
  std::vector<Frame> pending{{root.get(), false}};
  while (!pending.empty()) {
    const Frame frame = pending.back();
    pending.pop_back();
    if (frame.leaving) {
      uint64_t height = 0;
      for_each_child(*frame.node, [&](const Ref& child) {
        height = std::max(height, *heights.insert(child.get()).first);
      });
      if (height >= depth) {
        refuse(RefusalClass::LimitExceeded,
               "data.pkl: values are nested deeper than " + std::to_string(depth), frame.node->offset);
      }
      *heights.insert(frame.node).first = height + 1;
      continue;
    }
    const auto [entry, fresh] = heights.insert(frame.node);
    if (!fresh) {
      if (*entry != 0) continue;
      refuse(RefusalClass::PickleType, "data.pkl: a value contains itself", frame.node->offset);
    }
    pending.push_back({frame.node, true});
    for_each_child(*frame.node, [&](const Ref& child) { pending.push_back({child.get(), false}); });
  }
}

}  // namespace qcts::pickle
