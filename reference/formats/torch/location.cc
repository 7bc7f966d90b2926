// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <unordered_map>

#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/object.h"
#include "reference/formats/torch/storage.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

// Is `tag` the device's name, with or without an index: "cuda", "cuda:1"?
bool names_device(std::string_view tag, std::string_view device) {
  if (!tag.starts_with(device)) return false;
  const std::string_view rest = tag.substr(device.size());
  return rest.empty() || (rest.front() == ':' && all_digits(rest.substr(1)));
}

// Returns the map with the longest FROM that matches the tag, or nullptr.
const std::pair<std::string, std::string>* best_map(
    std::string_view tag, const std::vector<std::pair<std::string, std::string>>& maps) {
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& map : maps) {
    const bool fits =
        tag == map.first || (map.first.find(':') == std::string::npos && names_device(tag, map.first));
    if (fits && (best == nullptr || map.first.size() > best->first.size())) best = &map;
  }
  return best;
}

// Replaces device tags. Nodes that several places share stay shared; a tag's text may also be one of the
// user's own, so no node is changed in place.
class LocationMapper {
 public:
  explicit LocationMapper(const std::vector<std::pair<std::string, std::string>>& maps) : maps_(maps) {
    use_.matched.resize(maps.size());
  }

  LocationUse take() { return std::move(use_); }

  void visit(const Ref& node) {
    if (node->kind == Kind::persistent) return replace(node->items[0], 3);
    if (node->kind != Kind::call) return;
    const bool typed = pickle::is_call(node, "torch._tensor", "_rebuild_from_type_v2");
    if (typed && node->items[1]->items.size() == 4)
      return visit_call(node->items[1]->items[0], node->items[1]->items[2]);
    visit_call(node->items[0], node->items[1]);
  }

 private:
  void visit_call(const Ref& function, const Ref& arguments) {
    for (const char* name : {"_rebuild_device_tensor_from_numpy", "_rebuild_device_tensor_from_cpu_tensor",
                             "_rebuild_xla_tensor"})
      if (is_global(function, "torch._utils", name)) replace(arguments, 2);
    if (is_global(function, "torch._utils", "_rebuild_wrapper_subclass")) replace(arguments, 6);
  }

  void replace(const Ref& holder, size_t slot) {
    if (holder->kind != Kind::tuple || holder->items.size() <= slot) return;
    Ref& tag = holder->items[slot];
    const bool device = pickle::is_call(tag, "torch", "device");
    if (!device && tag->kind != Kind::string) return;
    Ref& fresh = replaced_[tag];
    if (fresh == nullptr) fresh = device ? mapped_device(tag) : mapped_text(tag);
    tag = Ref(fresh);
  }

  Ref mapped_text(const Ref& tag) {
    std::string text = mapped(tag->text.str());
    return text == tag->text ? tag : pickle::string(text);
  }

  Ref mapped_device(const Ref& device) {
    const auto& parts = device->items[1]->items;
    if (parts.empty() || parts[0]->kind != Kind::string) return device;
    std::string tag = parts[0]->text;
    if (parts.size() > 1) tag += ":" + std::to_string(parts[1]->integer);
    const std::string text = mapped(tag);
    if (text == tag) return device;
    return pickle::call(device->items[0], {pickle::string(text)});
  }

  std::string mapped(const std::string& tag) {
    if (use_.tags.size() < LocationUse::kMaxTags) use_.tags.insert(tag);
    if (const auto* map = best_map(tag, maps_)) use_.matched[static_cast<size_t>(map - maps_.data())] = true;
    return mapped_location(tag, maps_);
  }

  struct ByNode {
    size_t operator()(const Ref& ref) const { return std::hash<const pickle::Node*>()(ref.get()); }
  };
  const std::vector<std::pair<std::string, std::string>>& maps_;
  std::unordered_map<Ref, Ref, ByNode> replaced_;
  LocationUse use_;
};

struct Package {
  int priority;
  std::string_view device;
  bool indexed;  // also takes "device:3"
};
// From torch/serialization.py, 2.13. Priorities 100 and higher: names of torch 1.8 to 2.0 (ipu, xla) and of
// renamed privateuse1 backends.
constexpr std::array<Package, 13> kPackages = {{
    {10, "cpu", false},
    {20, "cuda", true},
    {21, "mps", true},
    {22, "meta", false},
    {23, "privateuseone", true},
    {24, "hpu", true},
    {25, "xpu", true},
    {26, "mtia", true},
    {100, "xla", true},
    {101, "ipu", true},
    {102, "npu", true},
    {103, "maia", true},
    {104, "privateuse1", true},
}};

}  // namespace

std::optional<std::string> device_of_location(std::string_view tag, const std::vector<std::string>& allow) {
  static_assert(std::ranges::is_sorted(kPackages, {}, &Package::priority));
  for (const Package& package : kPackages) {
    if (package.indexed ? names_device(tag, package.device) : tag == package.device)
      return std::string(package.device);
  }
  for (const std::string& device : allow)
    if (names_device(tag, device)) return device;
  return std::nullopt;
}

std::string mapped_location(std::string_view tag,
                            const std::vector<std::pair<std::string, std::string>>& maps) {
  const std::pair<std::string, std::string>* best = best_map(tag, maps);
  return best == nullptr ? std::string(tag) : best->second;
}

LocationUse map_locations(const Ref& root, const std::vector<std::pair<std::string, std::string>>& maps) {
  if (maps.empty()) return {};
  LocationMapper mapper(maps);
  pickle::for_each_holder(root, [&](const Ref& node) { mapper.visit(node); });
  return mapper.take();
}

}  // namespace qcts
