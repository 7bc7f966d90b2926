// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/numpy_arrays.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/graph.h"

namespace qcts::pickle {
namespace {

bool is_numpy_global(const Ref& node) {
  const std::string_view text = node->kind == Kind::global ? node->text.view() : std::string_view();
  const size_t blank = text.find(' ');
  return blank != std::string_view::npos && is_numpy_part(text.substr(0, blank), text.substr(blank + 1));
}

// Finds the numpy parts that can be reached without passing through the array of a device's tensor.
class OutsideWalk {
 public:
  void visit(const Ref& node) {
    if (!seen_.insert(node.get()).second) return;
    if (is_numpy_global(node)) found_.push_back(node);
    if (const Ref* arguments = numpy_arguments_of(node)) holders_.insert(arguments->get());
    bool skip = holders_.contains(node.get());
    for_each_child(*node, [&](const Ref& child) {
      if (!std::exchange(skip, false)) visit(child);
    });
  }
  const std::vector<Ref>& found() const { return found_; }

 private:
  std::unordered_set<const Node*> seen_, holders_;
  std::vector<Ref> found_;
};

bool is_array_function(const Ref& function) {
  return is_global(function, "torch._utils", "_rebuild_device_tensor_from_numpy") ||
         is_global(function, "torch._utils", "_rebuild_xla_tensor");
}

}  // namespace

bool takes_numpy_array(std::string_view module, std::string_view name) {
  return module == "torch._utils" &&
         (name == "_rebuild_device_tensor_from_numpy" || name == "_rebuild_xla_tensor");
}

const Ref* numpy_arguments_of(const Ref& node) {
  if (node->kind != Kind::call || node->items[1]->kind != Kind::tuple) return nullptr;
  const auto fits = [](const Ref& tuple) { return tuple->kind == Kind::tuple && tuple->items.size() == 4; };
  if (is_array_function(node->items[0])) return fits(node->items[1]) ? &node->items[1] : nullptr;
  if (!is_global(node->items[0], "torch._tensor", "_rebuild_from_type_v2") || !fits(node->items[1]))
    return nullptr;
  const auto& args = node->items[1]->items;
  return is_array_function(args[0]) && fits(args[2]) ? &args[2] : nullptr;
}

void check_numpy_parts(const Ref& root, const std::unordered_set<std::string>& allowed) {
  OutsideWalk walk;
  walk.visit(root);
  std::vector<std::string> names;
  uint64_t offset = 0;
  for (const Ref& node : walk.found()) {
    std::string name = node->text;
    std::ranges::replace(name, ' ', '.');
    if (allowed.contains(name) || std::ranges::find(names, name) != names.end()) continue;
    if (names.empty()) offset = node->offset;
    names.push_back(std::move(name));
  }
  if (!names.empty())
    refuse_globals(std::move(names), "a numpy value outside a tensor on an XLA device", offset);
}

}  // namespace qcts::pickle
