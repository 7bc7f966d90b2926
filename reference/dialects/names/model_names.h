// SPDX-License-Identifier: BSD-3-Clause
// How transformers 5.24.0 turns names on disk into names in memory, and which names it ties.
// Source: transformers 5.24.0, conversion_mapping.py and core_model_loading.py (rename_source_key), and
// modeling_utils.py (get_expanded_tied_weights_keys). The data is transformers_names.inc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/names/name_pattern.h"
#include "reference/dialects/names/tied_names.h"

namespace qcts {

// One rename of a model or of a model within it. A conversion also makes other tensors from those that
// it matches.
struct NameTransform {
  NamePattern from;
  std::vector<size_t> sources;  // for each branch of `from`, the number of the source
  std::vector<std::string> to;  // the text instead of a match; "\1" is a group. The targets of a conversion
  std::vector<std::string> operations;  // of a conversion: "MergeModulelist", "Concatenate"; empty: a rename
  bool group = false;                   // each source has its own target, after the first source was seen
  bool pairs = false;                   // layers.2i and layers.2i+1 are one layer
  std::optional<int64_t> offset;        // added to the index that the first group matches
  std::vector<std::string> begins;      // of names in the model within the model; empty: the whole model

  bool is_conversion() const { return !operations.empty(); }
};

// A name in memory. A conversion makes several names from one, or one from several.
struct MemoryName {
  std::string name;                           // the first target of a conversion
  const NameTransform* conversion = nullptr;  // nullptr: the tensor is the same on disk and in memory
  size_t source = 0;                          // number of the conversion's source that matched
};

struct MemoryNames;

class ModelNames {
 public:
  // The names of the model that config.json describes. It knows nothing about a class that is not
  // transformers' own.
  explicit ModelNames(const nlohmann::ordered_json& config);
  // The names of each class whose names differ, for a file without config.json.
  static std::vector<std::string> renamed_classes();
  static ModelNames of_class(std::string_view name);
  // The first class of each of the different sets of renames, with its names. They are made once.
  struct ClassNames;
  static const std::vector<ClassNames>& different_renames();

  // The class or the model_type is one of transformers.
  bool is_known() const { return known_; }
  bool knows_class() const { return knows_class_; }
  // Returns false if the models within the class are not known.
  bool is_complete() const { return complete_; }
  bool renames() const { return !transforms_.empty(); }
  // Returns the name in memory of an entry on disk. `is_name` says whether memory has a name.
  // Entries have to come in order of dot_natural_key, because some renames depend on the previous ones.
  MemoryName in_memory(const std::string& on_disk, const std::function<bool(const std::string&)>& is_name);
  // Returns the name as only the renames give it, where the names in memory are not known.
  MemoryName in_memory(const std::string& on_disk);
  // Returns the other targets of a conversion, for the name of the first.
  static std::vector<std::string> targets_of(const MemoryName& name);

  // Returns the tied weights among the names in memory; none if config.json ties no weights.
  std::vector<TiedName> tied(std::span<const std::string> names) const;
  bool ties_weights() const { return ties_weights_; }
  // Returns the ties of single weights, whether a model has them or not; not those of whole layers.
  std::vector<TiedName> single_ties() const;
  // Names that save_pretrained never stores.
  bool is_never_saved(std::string_view name) const;
  // Adds the base model's name to names without it, or removes it, where the names are another class's of the
  // architecture; for heads, it knows only what is tied.
  void fit_base(std::vector<MemoryNames>& names) const;

 private:
  struct Tie {
    std::string target, source;
  };
  ModelNames() = default;
  void add_class(const std::string& name, const std::string& model_type, const nlohmann::ordered_json& config,
                 const std::string& path, int depth);
  void add_transforms(const std::string& name, const std::string& model_type, const std::string& path);
  void add_ties(const nlohmann::ordered_json& ties, const std::string& below);
  std::string renamed(const std::string& name);

  bool is_base_ = false;  // the class is AutoModel's
  bool known_ = false, knows_class_ = false, complete_ = true, ties_weights_ = false;
  std::string base_prefix_;
  std::vector<std::shared_ptr<NameTransform>> transforms_;
  std::string identity_;      // the same for two models with the same renames
  std::vector<bool> active_;  // for each transform: the first source of a group was seen
  std::vector<std::pair<std::string, std::vector<std::string>>> seen_;  // class or model_type, paths
  std::vector<Tie> ties_;
  std::vector<std::string> never_saved_;
};

struct ModelNames::ClassNames {
  std::string name;
  ModelNames model;
};

// The names in memory of each name on disk, for a file that does not list them.
struct MemoryNames {
  std::vector<std::string> names;
  bool is_converted = false;  // the tensor is merged with others or split in memory
};
// Returns them in the order of `on_disk`, for the model that config.json describes.
std::vector<MemoryNames> memory_names(const nlohmann::ordered_json& config,
                                      std::span<const std::string> on_disk);

// Compares names by their parts, numbers as numbers, as transformers sorts them.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace qcts
