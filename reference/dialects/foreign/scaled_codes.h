// SPDX-License-Identifier: BSD-3-Clause
// Finds codes that no pattern of foreign_formats() names, by the floats next to them.
// Integers and floats belong together if they share a stem: both are leaves of one module, dict, list or
// tuple; the float's name begins with the integers' name; or the names differ in what follows their last '_'.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

class CodeSearch {
 public:
  using Place = std::pair<std::string_view, NamedTensor*>;

  // The places are the plain tensors, sorted by name. Tensors with a format are skipped.
  explicit CodeSearch(std::span<const Place> places);

  struct Found {
    bool codes = false;
    bool scaled = false;          // a float is next to them
    NamedTensor* part = nullptr;  // the float that shares the name
  };
  // Looks at a plain tensor without a format.
  Found look_at(const NamedTensor& tensor) const;

  // True if the module's tensors with the names of scales belong to codes in it.
  void note_codes(const NamedTensor& tensor);
  bool has_codes(std::string_view module) const;

 private:
  struct Module {
    bool scale = false;   // in it, or in a module of it that has no weight
    bool weight = false;  // of two dimensions or more
    bool dense = false;   // a weight of two dimensions or more that holds floats
    bool floats = false;  // other than biases and masks
    bool table = false;   // of values that codes select
    bool codes = false;
  };
  void survey_scales();
  bool has_weight(std::string_view module) const;
  Module module_of(std::string_view name) const;
  NamedTensor* part_of(std::string_view name) const;
  // `deeper`: also of an item that is a container.
  NamedTensor* first_float(const std::string& prefix, bool deeper = false) const;

  std::span<const Place> places_;
  std::map<std::string_view, Module> modules_;
  std::set<std::string_view> scaled_paths_;  // "fc.weight" for a float scales.fc.weight
};

// "model.norm" for "model.norm.weight".
inline std::string_view module_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

}  // namespace qcts
