// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/foreign/scaled_codes.h"

#include <algorithm>

#include "reference/dialects/foreign/words.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

bool is_bias_or_mask(std::string_view word) { return word.ends_with("bias") || word.ends_with("mask"); }

// A float that may say what codes next to it stand for.
bool may_scale(std::string_view name, const NamedTensor& tensor) {
  return tensor.foreign.empty() && is_float(tensor.dtype) && !is_bias_or_mask(last_part(name));
}

bool is_index(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == word.npos;
}

// Is it one word, or the key of a dict in a list: "1.scale"?
bool is_near(std::string_view rest, bool deeper) {
  const size_t dot = rest.find('.');
  if (!deeper) return dot == rest.npos;
  return dot != rest.npos && is_index(rest.substr(0, dot)) && rest.find('.', dot + 1) == rest.npos;
}

std::string_view without_first_part(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == name.npos ? std::string_view() : name.substr(dot + 1);
}

}  // namespace

CodeSearch::CodeSearch(std::span<const Place> places) : places_(places) {
  // Without a float or a name of scales, no module says anything about codes.
  const bool silent = std::ranges::none_of(places_, [](const Place& place) {
    return is_float(place.second->dtype) || names_scale(last_part(place.first));
  });
  if (silent) return;
  auto last = modules_.end();
  for (const auto& [name, tensor] : places_) {
    last = modules_.try_emplace(last, module_name(name));  // places are sorted, so the hint usually fits
    Module& module = last->second;
    const std::string_view word = last_part(name);
    const bool weight = tensor->shape.size() > 1 && names_weight(word), floats = may_scale(name, *tensor);
    module.weight |= weight;
    module.dense |= weight && floats;
    module.floats |= floats;
    module.table |= floats && !module.table && names_table(word);
    const size_t dot = name.find('.');
    if (floats && dot != name.npos && names_scale(name.substr(0, dot)))
      scaled_paths_.insert(without_first_part(name));
  }
  survey_scales();
}

void CodeSearch::survey_scales() {
  for (const auto& [name, tensor] : places_) {
    if (!tensor->foreign.empty() || !names_scale(last_part(name))) continue;
    std::string_view module = module_name(name);
    modules_[module].scale = true;
    for (int up = 0; up < 2 && !module.empty() && !has_weight(module); ++up) {
      if (last_part(module).find("norm") != module.npos) break;
      module = module_name(module);
      if (has_weight(module)) modules_[module].scale = true;
    }
  }
}

bool CodeSearch::has_weight(std::string_view module) const {
  const auto found = modules_.find(module);
  return found != modules_.end() && found->second.weight;
}

CodeSearch::Module CodeSearch::module_of(std::string_view name) const {
  const auto found = modules_.find(module_name(name));
  return found == modules_.end() ? Module() : found->second;
}

CodeSearch::Found CodeSearch::look_at(const NamedTensor& tensor) const {
  const std::string_view word = last_part(tensor.name);
  const bool integers = holds_integers(tensor.dtype);
  if (names_scale(word) || (!integers && !is_scaled_dtype(tensor.dtype))) return {};
  const Module module = module_of(tensor.name);
  const bool flat =
      tensor.shape.size() == 1 && module.scale && (is_name_of_codes(word) || hints_at_codes(word));
  if (tensor.shape.size() < 2 && !flat) return {};
  if (names_other(word) && !module.table) return {};
  const bool byte = tensor.dtype == DType::int8 || tensor.dtype == DType::uint8;
  const bool of_weight = names_weight(word) || hints_at_codes(word);
  Found found;
  found.part = integers ? part_of(tensor.name) : nullptr;
  // An integer next to a weight that holds floats selects or counts something, unless its name says
  // otherwise.
  const bool beside = module.floats && (of_weight || !module.dense);
  const bool by_scale = module.scale && (byte || !integers || of_weight || !module.dense);
  const std::string_view path = without_first_part(tensor.name);
  found.scaled =
      by_scale ||
      (integers && (beside || found.part != nullptr || (!path.empty() && scaled_paths_.contains(path))));
  found.codes = found.scaled || is_name_of_codes(word);
  return found;
}

// The float "gate_up_proj_scale" of "gate_up_proj", or "gate_up_proj_s" of "gate_up_proj_q".
NamedTensor* CodeSearch::part_of(std::string_view name) const {
  for (const char* separator : {"_", "."})
    if (NamedTensor* found = first_float(std::string(name) + separator)) return found;
  const std::string_view module = module_name(name);
  // An item of a list or tuple, and a container next to it or an item with the same name.
  if (is_index(last_part(name))) {
    const std::string list(module);
    if (NamedTensor* found = first_float(list.empty() ? list : list + ".", true)) return found;
    return list.empty() ? nullptr : first_float(list + "_");
  }
  const size_t stem = name.rfind('_');
  if (stem == name.npos || stem <= module.size() + 1) return nullptr;
  return first_float(std::string(name.substr(0, stem + 1)));
}

// Looks at only the first names that begin with the prefix: a file may hold any number of them.
NamedTensor* CodeSearch::first_float(const std::string& prefix, bool deeper) const {
  constexpr int kMaxLookedAt = 32;
  auto place = std::ranges::lower_bound(places_, std::string_view(prefix), {}, &Place::first);
  for (int i = 0; i < kMaxLookedAt && place != places_.end() && place->first.starts_with(prefix);
       ++i, ++place)
    if (is_near(place->first.substr(prefix.size()), deeper) && may_scale(place->first, *place->second))
      return place->second;
  return nullptr;
}

void CodeSearch::note_codes(const NamedTensor& tensor) { modules_[module_name(tensor.name)].codes = true; }

bool CodeSearch::has_codes(std::string_view module) const {
  const auto found = modules_.find(module);
  return found != modules_.end() && found->second.codes;
}

}  // namespace qcts
