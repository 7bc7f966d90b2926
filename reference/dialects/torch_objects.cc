// SPDX-License-Identifier: BSD-3-Clause
// Lists the containers and tensors of an object graph by name.
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

bool is_mapping(const pickle::Ref& node) {
  return node->kind == pickle::Kind::dict || pickle::is_call(node, "collections", "OrderedDict") ||
         pickle::is_call(node, "collections", "Counter");
}

// A list or dict that torch's C++ pickler wrapped in a call that names its type.
bool is_tag(const pickle::Ref& node) {
  if (node->kind != pickle::Kind::call || node->items[0]->kind != pickle::Kind::global) return false;
  return node->items[0]->text.starts_with("torch.jit._pickle ") &&
         node->items[1]->kind == pickle::Kind::tuple && !node->items[1]->items.empty();
}

class Walker {
 public:
  Walker(const Limits& limits, ReadBudget& budget) : limits_(limits), budget_(budget) {}

  std::vector<TensorLeaf> walk(const pickle::Ref& root) {
    const uint64_t count = count_leaves(root);
    // Real files name each tensor once or a few times; shared containers could name one tensor any number of
    // times.
    const uint64_t allowed = std::min(limits_.tensors, 4096 + 256 * distinct_);
    if (count > allowed)
      refuse(RefusalClass::LimitExceeded,
             "the containers name tensors more than " + std::to_string(allowed) + " times", root->offset);
    budget_.take_steps(kLeafSteps * count);
    budget_.take_bytes(kLeafBytes * count);
    leaves_.reserve(count);
    if (is_tensor_node(root))
      leaves_.push_back({"tensor", root, {}});
    else
      descend(root, nullptr);
    return std::move(leaves_);
  }

 private:
  uint64_t count_leaves(const pickle::Ref& node) {
    if (is_tensor_node(node)) {
      distinct_ += node->is_single() || shared_.insert(node.get()).second;
      return 1;
    }
    if (node->is_leaf()) return 0;
    if (!node->is_single())
      if (const auto known = counts_.find(node.get()); known != counts_.end()) return known->second;
    uint64_t count = 0;
    for_each_held(node, [&](const HeldValue& held) {
      count = std::min(count + count_leaves(*held.value), limits_.tensors + 1);
    });
    if (!node->is_single()) counts_[node.get()] = count;
    return count;
  }

  // The keys above a value, innermost first; full names are built for tensors only.
  struct Path {
    const Path* above = nullptr;
    const pickle::Ref* key = nullptr;  // nullptr: the index
    size_t index = 0;
  };

  void descend(const pickle::Ref& node, const Path* above) {
    if (node->is_leaf()) return;
    if (const auto known = counts_.find(node.get()); known != counts_.end() && known->second == 0) return;
    for_each_held(node, [&](const HeldValue& held) {
      if (held.unnamed && !is_tensor_node(*held.value)) return descend(*held.value, above);
      visit(*held.value, {above, held.key, held.index}, held.place);
    });
  }

  void visit(const pickle::Ref& value, const Path& path, TensorPlace place) {
    if (!is_tensor_node(value)) return descend(value, &path);
    std::string name;
    append(name, path, value->offset);
    leaves_.push_back({std::move(name), value, place});
    const auto [entry, fresh] = names_.try_emplace(leaves_.back().name, 1);
    if (!fresh) leaves_.back().name += "#" + std::to_string(++entry->second);
  }

  // A long key is repeated in every name below it.
  void append(std::string& name, const Path& path, uint64_t offset) {
    if (path.above != nullptr) {
      append(name, *path.above, offset);
      name += '.';
    }
    const bool text = path.key != nullptr && (*path.key)->kind == pickle::Kind::string;
    const std::string made = path.key == nullptr ? std::to_string(path.index)
                             : text              ? ""
                                                 : key_text(*path.key);
    const std::string_view part = text ? (*path.key)->text.view() : std::string_view(made);
    name_bytes_ += part.size() + 1;
    if (name_bytes_ > kFreeNameBytes + 512 * distinct_)
      refuse(RefusalClass::LimitExceeded,
             "the names of the tensors have more than " + std::to_string(name_bytes_) + " bytes", offset);
    budget_.take_bytes(part.size() + 1);
    name += part;
  }

  // A leaf with its entry in names_; naming it and reading its tensor take some 7 us.
  static constexpr uint64_t kFreeNameBytes = 8u << 20, kLeafBytes = 168, kLeafSteps = 128;

  const Limits& limits_;
  ReadBudget& budget_;
  uint64_t name_bytes_ = 0;
  std::unordered_map<const pickle::Node*, uint64_t> counts_;  // leaves below shared containers
  uint64_t distinct_ = 0;                                     // tensor nodes
  std::unordered_set<const pickle::Node*> shared_;
  std::vector<TensorLeaf> leaves_;
  // How often each name (stored in leaves_, which does not move) occurs. Sorted, because a file can choose
  // names that collide in any hash table.
  std::map<std::string_view, uint32_t> names_;
};

// Is it the state of an object with __slots__: a pair of __dict__ and the slots, either of them None?
bool is_pair_of_states(const pickle::Ref& state) {
  const auto fits = [](const pickle::Ref& half) {
    return half->kind == pickle::Kind::dict || half->kind == pickle::Kind::none;
  };
  return state->kind == pickle::Kind::tuple && state->items.size() == 2 && fits(state->items[0]) &&
         fits(state->items[1]);
}

// torch.nn.Module keeps its tensors and its modules there; state_dict() leaves these words out.
bool is_module_table(const pickle::Ref& key) {
  return key->kind == pickle::Kind::string &&
         (key->text == "_parameters" || key->text == "_buffers" || key->text == "_modules");
}

constexpr std::string_view kRebuilds[] = {"_rebuild_tensor",
                                          "_rebuild_tensor_v2",
                                          "_rebuild_tensor_v3",
                                          "_rebuild_parameter",
                                          "_rebuild_parameter_with_state",
                                          "_rebuild_qtensor",
                                          "_rebuild_sparse_tensor",
                                          "_rebuild_meta_tensor_no_storage",
                                          "_rebuild_nested_tensor",
                                          "_rebuild_device_tensor_from_cpu_tensor",
                                          "_rebuild_device_tensor_from_numpy",
                                          "_rebuild_xla_tensor"};

std::string_view rebuild_name(const pickle::Ref& node) {
  if (!node || (node->kind != pickle::Kind::call && node->kind != pickle::Kind::new_object)) return {};
  if (pickle::is_global(node->items[0], "torch.nn.parameter", "Parameter"))
    return is_tensor_node(node->items[1]->items.at(0)) ? "_rebuild_parameter" : "";
  const GlobalName callee = split_global(node->items[0]);
  if (callee.module == "torch._tensor" && callee.name == "_rebuild_from_type_v2") return callee.name;
  if (callee.module != "torch._utils") return {};
  for (std::string_view name : kRebuilds)
    if (callee.name == name) return name;
  return {};
}

}  // namespace

void for_each_held(const pickle::Ref& node, const std::function<void(const HeldValue&)>& visit) {
  const bool object = node->kind == pickle::Kind::call || node->kind == pickle::Kind::new_object;
  for (size_t i = 0; i < node->pairs.size(); ++i)
    visit({&node->pairs[i].second, &node->pairs[i].first, {node.get(), i}});
  if (!object) {
    for (size_t i = 0; i < node->items.size(); ++i)
      visit({&node->items[i], nullptr, {node.get(), i}, false, i});
    return;
  }
  const pickle::Ref& arguments = node->items[1];
  if (is_tag(node)) return visit({&arguments->items[0], nullptr, {}, true});
  if (is_mapping(node))
    for (const pickle::Ref& argument : arguments->items) visit({&argument, nullptr, {}, true});
  for (size_t i = 0; i < arguments->items.size() && !is_mapping(node); ++i)
    visit({&arguments->items[i], nullptr, {arguments.get(), i}, false, i});
  for (size_t i = 2; i < node->items.size(); ++i)
    visit({&node->items[i], nullptr, {node.get(), i}, false, i - 2});
  if (node->state == nullptr || node->state->is_leaf()) return;
  const auto visit_state = [&](const pickle::Ref& state) {
    for (size_t i = 0; i < state->pairs.size(); ++i) {
      const auto& [key, value] = state->pairs[i];
      visit({&value, &key, {state.get(), i}, is_module_table(key)});
    }
  };
  if (node->state->kind == pickle::Kind::dict) return visit_state(node->state);
  if (!is_pair_of_states(node->state)) return visit({&node->state, nullptr, {}, true});
  for (const pickle::Ref& half : node->state->items) visit_state(half);
}

bool is_tensor_node(const pickle::Ref& node) {
  return node && (node->kind == pickle::Kind::persistent || !rebuild_name(node).empty());
}

TensorNode decode_tensor_node(const pickle::Ref& node) {
  TensorNode parts;
  pickle::Ref inner = node;
  while (rebuild_name(inner).starts_with("_rebuild_parameter")) {
    parts.parameter = true;
    if (inner->items[1]->items.size() == 4) parts.parameter_states.push_back(inner->items[1]->items[3]);
    inner = inner->items[1]->items.at(0);
  }
  if (rebuild_name(inner) != "_rebuild_from_type_v2") {
    parts.plain = inner;
    return parts;
  }
  // torch/_tensor.py: _rebuild_from_type_v2(func, new_type, args, state)
  const pickle::Refs& arguments = inner->items[1]->items;
  if (arguments.size() != 4 || arguments[2]->kind != pickle::Kind::tuple)
    refuse(RefusalClass::PickleCall, "_rebuild_from_type_v2 takes a function, a class, a tuple and a state",
           inner->offset);
  parts.state = arguments[3];
  if (pickle::is_global(arguments[0], "torch._utils", "_rebuild_wrapper_subclass")) {
    parts.cls = arguments[1];
    parts.wrapper = arguments[2]->items;
    if (parts.wrapper.size() != 8)
      refuse(RefusalClass::PickleCall, "_rebuild_wrapper_subclass takes 8 arguments", inner->offset);
    return parts;
  }
  if (!pickle::is_global(arguments[1], "torch", "Tensor")) parts.cls = arguments[1];
  parts.plain = pickle::call(arguments[0], arguments[2]->items);
  parts.plain->offset = inner->offset;
  return parts;
}

std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits) {
  ReadBudget budget(UINT64_C(1) << 32, UINT64_C(1)
                                           << 32);  // unlimited: the file was read within its own budget
  return tensor_leaves(root, limits, budget);
}

std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits, ReadBudget& budget) {
  return Walker(limits, budget).walk(root);
}

}  // namespace qcts
