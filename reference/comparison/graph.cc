// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/graph.h"

#include <algorithm>

#include "reference/comparison/graph_walk.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/formats/refusal.h"

namespace qcts {

using pickle::Kind;
using pickle::Ref;

namespace {

// Limit on pairs of nodes: two graphs of shared containers can form as many as their product.
constexpr uint64_t kMostVisits = UINT64_C(1) << 27;

const char* sequence_name(Kind kind) { return kind == Kind::list ? "list" : "tuple"; }
bool is_sequence(Kind kind) { return kind == Kind::list || kind == Kind::tuple; }
bool is_call_like(const Ref& node) { return node->kind == Kind::call || node->kind == Kind::new_object; }

// An object whose identity matters in Python: a change made under one name shows under the other.
bool has_identity(const Ref& node) {
  switch (node->kind) {
    case Kind::list:
    case Kind::dict:
    case Kind::set:
    case Kind::new_object:
      return true;
    case Kind::call:
      return node->state != nullptr || !node->pairs.empty() || !node->appended().empty() ||
             is_wrapped_tensor(node) || pickle::is_call(node, "collections", "OrderedDict");
    default:
      return false;
  }
}

// A call whose arguments are only numbers, strings and globals counts as one value.
bool is_value(const Ref& node) {
  return node->kind == Kind::call && node->state == nullptr && node->pairs.empty() &&
         node->appended().empty() && node->items[1]->kind == Kind::tuple &&
         std::ranges::all_of(node->items[1]->items, [](const Ref& item) { return item->is_leaf(); });
}

bool is_nothing(const Ref& state) {
  return !state || state->kind == Kind::none || (state->kind == Kind::dict && state->pairs.empty());
}

// Does one file name a function where the other takes it out of its class?
bool spells_one_function(const Ref& a, const Ref& b) {
  if ((a->kind == Kind::global) == (b->kind == Kind::global)) return false;
  const std::optional<std::string> x = function_path(a);
  return x && x == function_path(b);
}

}  // namespace

void GraphWalk::differ(std::string field, std::string a, std::string b) {
  out_.different.add({path_, std::move(field), std::move(a), std::move(b)});
}

void GraphWalk::spelt(std::string field, std::string a, std::string b) {
  out_.spelling.add({path_, std::move(field), std::move(a), std::move(b)});
}

void GraphWalk::visit_part(const Ref& a, const Ref& b, std::string_view step) {
  const Step below(path_, step);
  visit(a, b);
}

bool GraphWalk::met_before(const Ref& a, const Ref& b) {
  if (++visits_ > kMostVisits)
    refuse(RefusalClass::LimitExceeded, "the two objects share too many of their parts to be compared");
  if (a->is_single() && b->is_single()) return false;
  return !met_.emplace(a.get(), b.get()).second;
}

void GraphWalk::visit(const Ref& a, const Ref& b) {
  const bool outer = below_lost_identity_;
  if (has_identity(a) && has_identity(b) && !is_shared_alike(a, b)) below_lost_identity_ = true;
  const bool tensors = is_wrapped_tensor(a) && is_wrapped_tensor(b);
  if (spells_one_function(a, b))
    spelt("", value_text(a), value_text(b));
  else if (a->is_leaf() && b->is_leaf())
    compare_leaves(a, b);
  else if (!met_before(a, b))
    tensors ? compare_tensors(a, b) : compare_nodes(a, b);
  below_lost_identity_ = outer;
}

bool GraphWalk::is_shared_alike(const Ref& a, const Ref& b) {
  if (a->is_single() && b->is_single()) return true;
  const auto [first_a, first_b] = nodes_.meet(a.get(), b.get(), path_);
  if (first_a == first_b) return true;
  const auto words = [&](const std::string& first) {
    return first == path_ ? std::string("a separate object") : "the object " + first;
  };
  if (!below_lost_identity_) differ("identity", words(first_a), words(first_b));
  return false;
}

void GraphWalk::compare_leaves(const Ref& a, const Ref& b) {
  if (a->kind == Kind::global && b->kind == Kind::global) {
    compare_globals("", a, b);
    return;
  }
  if (a->kind == b->kind && identity_text(a) == identity_text(b) && a->text == b->text) return;
  const auto [left, right] = value_texts(a, b);
  differ("", left, right);
}

bool GraphWalk::compare_globals(const char* field, const Ref& a, const Ref& b) {
  const SameGlobal same = same_global(a, b);
  if (same == SameGlobal::no) differ(field, value_text(a), value_text(b));
  if (same == SameGlobal::by_another_path) spelt(field, value_text(a), value_text(b));
  return same != SameGlobal::no;
}

void GraphWalk::compare_nodes(const Ref& a, const Ref& b) {
  if (const auto x = mapping_of(a), y = mapping_of(b); x && y) return compare_mappings(*x, *y);
  if (const auto x = members_of(a), y = members_of(b); x && y) return compare_members(*x, *y);
  if (const auto x = bytes_value(a), y = bytes_value(b); x && y) {
    Ref left = pickle::make_node(Kind::bytes), right = pickle::make_node(Kind::bytes);
    left->text = *x, right->text = *y;
    return compare_leaves(left, right);
  }
  if (is_sequence(a->kind) && is_sequence(b->kind)) {
    if (a->kind != b->kind) differ("type", sequence_name(a->kind), sequence_name(b->kind));
    return compare_items({a->items.begin(), a->items.end()}, {b->items.begin(), b->items.end()});
  }
  if (a->kind == Kind::persistent && b->kind == Kind::persistent) return compare_bare_storages(a, b);
  if (is_call_like(a) && a->kind == b->kind) return compare_calls(a, b);
  if (a->kind == Kind::global && b->kind == Kind::global) {
    if (compare_globals("", a, b)) compare_sources(a, b);
    return;
  }
  const auto kind_of = [](const Ref& node) {
    return is_wrapped_tensor(node) ? layers_of(node).kind() : value_text(node);
  };
  differ("type", kind_of(a), kind_of(b));
}

GraphWalk::Entries GraphWalk::entries_of(const MappingParts& mapping, const TorchObject* object) const {
  Entries entries;
  entries.reserve(mapping.entries.size());
  for (const auto& [key, value] : mapping.entries) entries.push_back({key, value, object});
  return entries;
}

void GraphWalk::compare_mappings(const MappingParts& a, const MappingParts& b) {
  if (a.type != b.type) differ("type", a.type, b.type);
  compare_entries(entries_of(a, a_object_), entries_of(b, b_object_), true);
  compare_states(a.state, b.state);
}

// A field that an older version of the class lacks is equal to None in a newer one.
void GraphWalk::compare_alone(const Entry& entry, bool left, const ClassSchema* schema) {
  const Step below(path_, key_step(entry.key, path_.empty()));
  const std::string what =
      is_wrapped_tensor(entry.value) ? layers_of(entry.value).kind() : value_text(entry.value);
  const std::string_view name = entry.key->text;
  const bool optional =
      schema != nullptr && entry.value->kind == Kind::none &&
      (std::ranges::find(schema->optional_tensors, name) != schema->optional_tensors.end() ||
       std::ranges::find(schema->optional_attributes, name) != schema->optional_attributes.end());
  (optional ? out_.spelling : out_.different)
      .add({path_, "", left ? what : "absent", left ? "absent" : what});
}

void GraphWalk::compare_entries(const Entries& a, const Entries& b, bool ordered, const ClassSchema* schema) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < b.size(); ++i) places.emplace(identity_text(b[i].key), i);
  std::vector<bool> taken(b.size());
  std::vector<std::pair<size_t, size_t>> common;  // places in a and in b
  const bool first = path_.empty();
  for (size_t i = 0; i < a.size(); ++i) {
    const auto found = places.find(identity_text(a[i].key));
    if (found == places.end() || taken[found->second]) {
      compare_alone(a[i], true, schema);
      continue;
    }
    taken[found->second] = true;
    common.emplace_back(i, found->second);
    const TorchObject *const a_outer = a_object_, *const b_outer = b_object_;
    a_object_ = a[i].object, b_object_ = b[found->second].object;
    visit_part(a[i].value, b[found->second].value, key_step(a[i].key, first));
    a_object_ = a_outer, b_object_ = b_outer;
  }
  for (size_t i = 0; i < b.size(); ++i)
    if (!taken[i]) compare_alone(b[i], false, schema);
  if (!ordered) return;
  std::vector<size_t> order;
  for (const auto& [left, right] : common) order.push_back(right);
  std::ranges::sort(order);
  for (size_t i = 0; i < common.size(); ++i)
    if (order[i] != common[i].second)
      return differ("order, place " + std::to_string(i), value_text(a[common[i].first].key),
                    value_text(b[order[i]].key));
}

void GraphWalk::compare_members(const std::vector<Ref>& a, const std::vector<Ref>& b) {
  std::multimap<std::string, Ref> left;
  for (const Ref& member : b) left.emplace(identity_text(member), member);
  for (const Ref& member : a) {
    const auto found = left.find(identity_text(member));
    if (found == left.end())
      differ("member", value_text(member), "absent");
    else
      left.erase(found);
  }
  for (const auto& [text, member] : left) differ("member", "absent", value_text(member));
}

void GraphWalk::compare_items(std::span<const Ref> a, std::span<const Ref> b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) visit_part(a[i], b[i], "[" + std::to_string(i) + "]");
  if (a.size() != b.size()) differ("length", std::to_string(a.size()), std::to_string(b.size()));
}

void GraphWalk::compare_calls(const Ref& a, const Ref& b) {
  const bool same = a->items[0]->kind == Kind::global && b->items[0]->kind == Kind::global
                        ? compare_globals("class", a->items[0], b->items[0])
                        : (visit_part(a->items[0], b->items[0], ".class"), true);
  if (same && is_value(a) && is_value(b)) {
    const Ref &left = a->items[1], &right = b->items[1];
    if (identity_text(left) != identity_text(right)) differ("", value_text(a), value_text(b));
    return;
  }
  if (same) compare_sources(a->items[0], b->items[0]);
  compare_arguments(a, b);
  compare_items(a->appended(), b->appended());
  MappingParts left, right;
  for (const auto& [key, value] : a->pairs) left.entries.emplace_back(key, value);
  for (const auto& [key, value] : b->pairs) right.entries.emplace_back(key, value);
  compare_entries(entries_of(left, a_object_), entries_of(right, b_object_), true);
  compare_states(a->state, b->state);
}

// The file and the source of a class, which a legacy file holds next to the name where that comes first.
void GraphWalk::compare_sources(const Ref& a, const Ref& b) {
  if (a->kind != Kind::global || b->kind != Kind::global || a->items.size() + b->items.size() == 0) return;
  if (a->items.empty() || b->items.empty())
    return spelt("source of the class", a->items.empty() ? "absent" : "stored",
                 b->items.empty() ? "absent" : "stored");
  if (met_before(a, b)) return;
  for (size_t i : {2, 3})
    visit_part(a->items[0]->items.at(i), b->items[0]->items.at(i), i == 2 ? ".class file" : ".class source");
}

void GraphWalk::compare_arguments(const Ref& a, const Ref& b) {
  const Ref &left = a->items[1], &right = b->items[1];
  if (left->kind != Kind::tuple || right->kind != Kind::tuple) return visit_part(left, right, ".arguments");
  const size_t common = std::min(left->items.size(), right->items.size());
  for (size_t i = 0; i < common; ++i) {
    const std::string name = argument_name(a->items[0], i);
    visit_part(left->items[i], right->items[i],
               name.empty() ? ".arguments[" + std::to_string(i) + "]" : "." + name);
  }
  if (left->items.size() != right->items.size())
    differ("arguments", std::to_string(left->items.size()), std::to_string(right->items.size()));
}

// A dict of attributes, with __slots__ a pair of them.
void GraphWalk::compare_states(const Ref& a, const Ref& b, const ClassSchema* schema) {
  if (is_nothing(a) && is_nothing(b)) return;
  if (is_nothing(a) || is_nothing(b)) {
    const std::optional<MappingParts> lone = mapping_of(is_nothing(a) ? b : a);
    if (!lone) return differ("state", value_text(a), value_text(b));
    return is_nothing(a) ? compare_entries({}, entries_of(*lone, b_object_), true, schema)
                         : compare_entries(entries_of(*lone, a_object_), {}, true, schema);
  }
  if (met_before(a, b)) return;
  if (a->kind == Kind::dict && b->kind == Kind::dict)
    return compare_entries(entries_of(*mapping_of(a), a_object_), entries_of(*mapping_of(b), b_object_), true,
                           schema);
  const bool slots =
      a->kind == Kind::tuple && b->kind == Kind::tuple && a->items.size() == 2 && b->items.size() == 2;
  if (!slots) {
    const Step below(path_, ".state");
    return a->is_leaf() && b->is_leaf() ? compare_leaves(a, b) : compare_nodes(a, b);
  }
  for (size_t i = 0; i < 2; ++i) compare_states(a->items[i], b->items[i], schema);
}

void GraphWalk::compare_files(const TorchObjects& a, const TorchObjects& b) {
  if (a.empty() || b.empty()) return;
  a_object_ = a.front(), b_object_ = b.front();
  if (a.size() == 1 && b.size() == 1) return visit(a.front()->root, b.front()->root);
  Entries left, right;
  const auto join = [&](const TorchObjects& objects, Entries& entries, std::vector<MappingParts>& mappings) {
    for (const TorchObject* object : objects) {
      std::optional<MappingParts> mapping = mapping_of(object->root);
      if (!mapping) return false;
      std::ranges::move(entries_of(*mapping, object), std::back_inserter(entries));
      mappings.push_back(std::move(*mapping));
    }
    return true;
  };
  std::vector<MappingParts> left_shards, right_shards;
  if (!join(a, left, left_shards) || !join(b, right, right_shards))
    return differ("files", std::to_string(a.size()), std::to_string(b.size()));
  const bool alike = a.size() == b.size();
  compare_entries(left, right, alike);
  for (size_t i = 0; alike && i < a.size(); ++i) {
    if (left_shards[i].type != right_shards[i].type)
      differ("type", left_shards[i].type, right_shards[i].type);
    compare_states(left_shards[i].state, right_shards[i].state);
  }
  if (!alike) spelt("files", std::to_string(a.size()), std::to_string(b.size()));
}

void compare_graphs(const TorchObjects& a, const TorchObjects& b, const std::string& path,
                    const ElementPlace& place, ContentFindings& out) {
  GraphWalk walk(path, place, out);
  walk.compare_files(a, b);
  walk.finish();
}

}  // namespace qcts
