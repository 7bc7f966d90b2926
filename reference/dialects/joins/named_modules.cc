// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/joins/named_modules.h"

#include <algorithm>
#include <utility>

namespace qcts {
namespace {

bool is_before_from_the_end(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

// Takes the first part off a name. Returns false if it has only one part.
bool drop_first_part(std::string_view& name) {
  const size_t dot = name.find('.');
  if (dot == name.npos) return false;
  name.remove_prefix(dot + 1);
  return true;
}

}  // namespace

std::string_view module_of_tensor(std::string_view tensor) {
  const size_t dot = tensor.rfind('.');
  return dot == tensor.npos ? "" : tensor.substr(0, dot);
}

std::string unwrapped_name(std::string_view module) {
  constexpr std::string_view kWrappers[] = {"base_layer", "_orig_mod", "_checkpoint_wrapped_module",
                                            "_fsdp_wrapped_module"};
  std::string name;
  for (std::string_view rest = module;;) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    if (std::ranges::find(kWrappers, part) == std::end(kWrappers)) {
      if (!name.empty()) name += '.';
      name += part;
    }
    if (!drop_first_part(rest)) return name;
  }
}

NamedModules::NamedModules(std::vector<ModuleWord> words, const PlainPlaces& places,
                           ModulesInMemory in_memory)
    : places_(&places), in_memory_(std::move(in_memory)) {
  if (words.empty()) return;
  for (const auto& [name, place] : places) modules_.push_back(unwrapped_name(module_of_tensor(name)));
  std::ranges::sort(modules_, is_before_from_the_end);
  modules_.erase(std::ranges::unique(modules_).begin(), modules_.end());
  for (const ModuleWord& word : words) resolve(word);
  for (const auto& [said_by, answered] : answered_)
    if (!answered) findings_.push_back("config.json says " + said_by + " for modules that it does not hold");
}

const std::vector<std::string>& NamedModules::words_of(const std::string& module) const {
  static const std::vector<std::string> kNone;
  const auto found = words_.find(module);
  return found == words_.end() ? kNone : found->second;
}

bool NamedModules::behind_prefix(const std::string& module) const {
  return std::ranges::any_of(words_of(module), [&](const std::string& word) { return word != module; });
}

void NamedModules::resolve(const ModuleWord& word) {
  if (word.fits == nullptr) return resolve_name(word);
  if (word.required) answered_.try_emplace(word.said_by, false);
  resolve_pattern(word);
}

void NamedModules::resolve_name(const ModuleWord& word) {
  if (is_module(word.word)) return add(word.word, word);
  if (const auto known = in_memory_.find(word.word); known != in_memory_.end())
    return add(known->second, word);
  std::vector<std::string_view> modules = modules_behind_prefix(word.word);
  for (std::string_view end = word.word; modules.empty() && drop_first_part(end);)
    if (std::ranges::binary_search(modules_, end, is_before_from_the_end)) modules.push_back(end);
  if (modules.size() > 1 && !word.required) return;
  for (const std::string_view module : modules) add(module, word);
  if (modules.size() == 1 || !word.required) return;
  findings_.push_back("config.json says " + word.said_by + " of " + word.word +
                      (modules.empty()
                           ? ", which it does not hold"
                           : ", which may be " + std::string(modules[0]) + " or " + std::string(modules[1])));
}

void NamedModules::resolve_pattern(const ModuleWord& word) {
  for (const std::string& module : modules_)
    if (word.fits(word.word, module)) {
      answered_[word.said_by] = true;
      return;
    }
  for (const std::string& module : modules_)
    for (std::string_view end = module; drop_first_part(end);)
      if (word.fits(word.word, std::string(end))) {
        add(module, word);
        break;
      }
}

// A module, or the modules below it.
bool NamedModules::is_module(std::string_view name) const {
  if (std::ranges::binary_search(modules_, name, is_before_from_the_end)) return true;
  const std::string below = std::string(name) + ".";
  const auto found = places_->lower_bound(below);
  return found != places_->end() && found->first.starts_with(below);
}

std::vector<std::string_view> NamedModules::modules_behind_prefix(std::string_view name) const {
  const std::string ending = "." + std::string(name);
  std::vector<std::string_view> found;
  for (auto at = std::ranges::lower_bound(modules_, std::string_view(ending), is_before_from_the_end);
       at != modules_.end() && at->ends_with(ending); ++at)
    found.push_back(*at);
  return found;
}

void NamedModules::add(std::string_view module, const ModuleWord& word) {
  words_[std::string(module)].push_back(word.word);
  if (word.required && word.fits == nullptr) required_.try_emplace(std::string(module), word.said_by);
  if (const auto found = answered_.find(word.said_by); found != answered_.end()) found->second = true;
}

}  // namespace qcts
