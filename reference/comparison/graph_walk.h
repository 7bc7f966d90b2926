// SPDX-License-Identifier: BSD-3-Clause
// The class that walks two graphs for compare_graphs. Only the files that implement it include this header.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/comparison/graph.h"
#include "reference/comparison/layers.h"
#include "reference/comparison/words.h"
#include "reference/dialects/classes/schema.h"

namespace qcts {

// Maps objects to the path under which the walk first met them.
// Two objects are shared in the same way if both paths are equal.
class FirstPaths {
 public:
  using Paths = std::pair<std::string, std::string>;
  Paths meet(const void* a, const void* b, const std::string& path) {
    return {a_.try_emplace(a, path).first->second, b_.try_emplace(b, path).first->second};
  }

 private:
  std::unordered_map<const void*, std::string> a_, b_;
};

class GraphWalk {
 public:
  GraphWalk(std::string path, const ElementPlace& place, ContentFindings& out)
      : path_(std::move(path)), place_(place), out_(out) {}

  void compare_files(const TorchObjects& a, const TorchObjects& b);
  // Reports bytes of storages that differ although no tensor uses them.
  void finish();

 private:
  using Ref = pickle::Ref;
  struct Entry {
    Ref key, value;
    const TorchObject* object;
  };
  using Entries = std::vector<Entry>;
  struct StoragePair {
    std::string path;
    bool equal = false, told = false;
  };
  // Appends to the path for as long as this object lives.
  class Step {
   public:
    Step(std::string& path, std::string_view more) : path_(path), length_(path.size()) { path_ += more; }
    ~Step() { path_.resize(length_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::string& path_;
    size_t length_;
  };

  // Functions for nodes, defined in graph.cc.
  void differ(std::string field, std::string a, std::string b);
  void spelt(std::string field, std::string a, std::string b);
  void visit(const Ref& a, const Ref& b);
  void visit_part(const Ref& a, const Ref& b, std::string_view step);
  void compare_nodes(const Ref& a, const Ref& b);
  bool is_shared_alike(const Ref& a, const Ref& b);
  void compare_leaves(const Ref& a, const Ref& b);
  void compare_mappings(const MappingParts& a, const MappingParts& b);
  void compare_entries(const Entries& a, const Entries& b, bool ordered, const ClassSchema* schema = nullptr);
  void compare_alone(const Entry& entry, bool left, const ClassSchema* schema);
  void compare_members(const std::vector<Ref>& a, const std::vector<Ref>& b);
  void compare_items(std::span<const Ref> a, std::span<const Ref> b);
  void compare_calls(const Ref& a, const Ref& b);
  void compare_sources(const Ref& a, const Ref& b);
  void compare_arguments(const Ref& a, const Ref& b);
  void compare_states(const Ref& a, const Ref& b, const ClassSchema* schema = nullptr);
  bool compare_globals(const char* field, const Ref& a, const Ref& b);
  bool met_before(const Ref& a, const Ref& b);
  Entries entries_of(const MappingParts& mapping, const TorchObject* object) const;

  // Functions for tensors, defined in graph_tensors.cc.
  void compare_tensors(const Ref& a, const Ref& b);
  void compare_parameters(const Layers& a, const Layers& b);
  void compare_elements_of(const Ref& a, const Ref& b);
  void compare_views(const Tensor& a, const Tensor& b);
  void compare_hooks(const Ref& a, const Ref& b);
  void compare_flag(const char* field, bool a, bool b);
  void compare_bare_storages(const Ref& a, const Ref& b);
  // The elements of a tensor, whichever function rebuilds them.
  struct Elements {
    std::string function;
    bool requires_grad = false, conj = false, neg = false;
    Ref hooks;
    std::optional<Tensor> tensor;
  };
  std::optional<Elements> elements_of(const TorchObject& object, const Ref& node);
  Tensor on_device(Tensor tensor, const std::string& device);
  Tensor in_its_window(Tensor tensor, const TorchObject& object, const Ref& id_node);
  StoragePair& compare_storages(const Storage& a, const Storage& b);

  std::string path_;
  const ElementPlace& place_;
  ContentFindings& out_;
  const TorchObject* a_object_ = nullptr;
  const TorchObject* b_object_ = nullptr;
  FirstPaths nodes_, storages_;
  std::set<std::pair<const pickle::Node*, const pickle::Node*>> met_;
  std::map<std::pair<const Storage*, const Storage*>, StoragePair> storage_pairs_;
  std::map<std::tuple<const Storage*, int64_t, int64_t>, std::shared_ptr<const Storage>> windows_;
  std::map<std::pair<const Storage*, std::string>, std::shared_ptr<const Storage>> on_devices_;
  uint64_t visits_ = 0;
  bool below_lost_identity_ = false;  // true below a node whose lost identity has been reported
};

}  // namespace qcts
