// SPDX-License-Identifier: BSD-3-Clause
// The modules of a checkpoint that a configuration names.
// Programs that wrap a model or take it out of another rename its tensors and leave config.json as it is:
// "language_model.model.fc" for "model.fc". So a name that no module has belongs to the one module that has
// it after a prefix, or whose own name it has after one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

// The plain tensors of a checkpoint by name, with their places in the file.
using PlainPlaces = std::map<std::string_view, size_t>;

// The name on disk of each module, by its name in memory.
using ModulesInMemory = std::map<std::string, std::string, std::less<>>;

// A word of a configuration that is about modules.
struct ModuleWord {
  std::string word;
  std::string said_by;   // for people: "config_groups.group_0"
  bool required = true;  // false: it may be about no module
  // Tells whether a pattern fits the name. nullptr: the word is a name itself.
  bool (*fits)(const std::string& word, const std::string& name) = nullptr;
};

// Returns the name of a tensor's module; "" for a name without a dot.
std::string_view module_of_tensor(std::string_view tensor);
// Returns the name of a module without the parts that adapters and compilers put into it: "base_layer",
// "_orig_mod" and the like.
std::string unwrapped_name(std::string_view module);

class NamedModules {
 public:
  // `in_memory` has the modules by their names in memory, where they differ from those in the file.
  NamedModules(std::vector<ModuleWord> words, const PlainPlaces& places, ModulesInMemory in_memory = {});

  // Modules are called by their unwrapped_name() here.
  // Returns the names that are about the module, and the patterns that fit it only after a prefix.
  const std::vector<std::string>& words_of(const std::string& module) const;
  // Returns true if a word is not the module's own name.
  bool behind_prefix(const std::string& module) const;
  // The modules that a required name is about, with what it says about them.
  const std::map<std::string, std::string>& required() const { return required_; }
  // Returns what is wrong with required words: about no module, or about one of several.
  // Patterns are wrong where no word of the same `said_by` is about a module.
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  void resolve(const ModuleWord& word);
  void resolve_name(const ModuleWord& word);
  void resolve_pattern(const ModuleWord& word);
  bool is_module(std::string_view name) const;
  std::vector<std::string_view> modules_behind_prefix(std::string_view name) const;
  void add(std::string_view module, const ModuleWord& word);

  const PlainPlaces* places_;
  ModulesInMemory in_memory_;
  std::vector<std::string> modules_;  // sorted by their last letters
  std::map<std::string, std::vector<std::string>, std::less<>> words_;
  std::map<std::string, std::string> required_;
  std::map<std::string, bool> answered_;  // by said_by: whether a word of it is about a module
  std::vector<std::string> findings_;
};

}  // namespace qcts
