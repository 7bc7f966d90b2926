// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/torchao/listed_names.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "reference/formats/refusal.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxExperts = 65536;

// The entry of a plain tensor.
std::string plain_key(std::string_view name, SafetensorsKeys keys) {
  return std::string(name) + (keys == SafetensorsKeys::colon ? ":_data" : "");
}

std::vector<std::string_view> components_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool is_list_index(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The tensors of one source of a conversion that merges a list of modules: the place of the number in which
// their names differ, and the numbers.
struct Numbered {
  size_t place = 0;
  std::set<size_t> numbers;
};

std::optional<Numbered> numbered(const std::vector<std::string_view>& names) {
  std::vector<std::vector<std::string_view>> all;
  for (std::string_view name : names) all.push_back(components_of(name));
  Numbered found;
  bool differ = false;
  for (size_t place = 0; place < all[0].size(); ++place)
    for (const auto& parts : all) {
      if (parts.size() != all[0].size()) return std::nullopt;
      if (parts[place] == all[0][place]) continue;
      if (differ && place != found.place) return std::nullopt;
      differ = true;
      found.place = place;
    }
  // A single tensor is numbered by the last number in its name.
  for (size_t place = all[0].size(); !differ && place-- > 0;)
    if (is_list_index(all[0][place])) {
      differ = true;
      found.place = place;
    }
  if (!differ) return std::nullopt;
  for (const auto& parts : all) {
    if (!is_list_index(parts[found.place])) return std::nullopt;
    found.numbers.insert(std::stoul(std::string(parts[found.place])));
  }
  return found;
}

std::string with_number(std::string_view name, size_t place, size_t number) {
  std::string text;
  const std::vector<std::string_view> parts = components_of(name);
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i > 0 ? "." : "") + (i == place ? std::to_string(number) : std::string(parts[i]));
  return text;
}

size_t common_ending(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> x = components_of(a), y = components_of(b);
  size_t count = 0;
  while (count < std::min(x.size(), y.size()) && x[x.size() - 1 - count] == y[y.size() - 1 - count]) ++count;
  return count;
}

std::string in_count(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

bool does(const NameTransform& conversion, const char* operation) {
  return std::ranges::find(conversion.operations, operation) != conversion.operations.end();
}

// The names of a conversion's entries by source, if it merges a list of modules.
std::map<size_t, std::vector<std::string_view>> merged_names(std::span<const StoredEntry> parts) {
  std::map<size_t, std::vector<std::string_view>> names;
  for (const StoredEntry& part : parts)
    if (part.conversion != nullptr && does(*part.conversion, "MergeModulelist"))
      names[part.source].push_back(part.entry->name);
  return names;
}

}  // namespace

std::string part_prefix(std::string_view name, SafetensorsKeys keys) {
  if (keys == SafetensorsKeys::colon) return std::string(name) + ":";
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  return std::string(name.substr(0, dot)) + "._" + std::string(name.substr(dot + 1)) + "_";
}

ListedNames::ListedNames(const std::set<std::string_view>& names, const EntryIndex& entries,
                         std::span<const SafetensorsEntry* const> order, SafetensorsKeys keys,
                         ReadBudget& budget)
    : names_(names),
      hashed_(names.begin(), names.end()),
      entries_(entries),
      order_(order),
      keys_(keys),
      budget_(budget) {
  for (const SafetensorsEntry* entry : order_)
    if (const std::string_view owner = owner_of(entry->name); !owner.empty()) stored_.emplace(owner);
  budget_.take_bytes(72 * stored_.size() + 56 * names_.size());
}

std::string_view ListedNames::owner_of(std::string_view key) const {
  const auto listed = [&](std::string_view name) {
    const auto found = hashed_.find(name);
    return found == hashed_.end() ? std::string_view() : *found;
  };
  if (keys_ == SafetensorsKeys::colon) {
    const size_t colon = key.rfind(':');
    return colon == key.npos ? std::string_view() : listed(key.substr(0, colon));
  }
  if (const std::string_view name = listed(key); !name.empty()) return name;
  const size_t dot = key.rfind("._");
  if (dot == key.npos) return {};
  // Both l.w and l.w_b may be listed. The key "l._w_b_qdata" belongs to the longer one.
  std::string name(key);
  name.erase(dot + 1, 1);
  for (size_t end = name.rfind('_'); end != name.npos && end > dot + 1; end = name.rfind('_', end - 1))
    if (const std::string_view found = listed(std::string_view(name).substr(0, end)); !found.empty())
      return found;
  return {};
}

ListedNames::Found ListedNames::mapped(ModelNames& model) {
  if (sorted_.empty()) {
    budget_.take_bytes(sizeof(sorted_[0]) * order_.size());
    sorted_.assign(order_.begin(), order_.end());
    std::ranges::sort(sorted_, [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
      return natural_less(a->name, b->name);
    });
  }
  const auto is_name = [&](const std::string& key) { return !owner_of(key).empty(); };
  Found found;
  for (const SafetensorsEntry* entry : sorted_) {
    const MemoryName name = model.in_memory(entry->name, is_name);
    std::vector<std::string> keys = ModelNames::targets_of(name);
    keys.insert(keys.begin(), name.name);
    budget_.take_bytes(keys.size() * (112 + 2 * name.name.size()));
    budget_.take_steps(keys.size());
    for (const std::string& key : keys)
      if (is_name(key)) found[key].push_back({entry, name.conversion, name.source});
  }
  return found;
}

std::set<std::string, std::less<>> ListedNames::owners_in(const Found& found) const {
  std::set<std::string, std::less<>> owners;
  for (const auto& [key, parts] : found) owners.emplace(owner_of(key));
  return owners;
}

// The names that are stored, weighted over the entries that belong to them.
size_t ListedNames::explained(const Found& found) const {
  size_t parts = 0;
  for (const auto& [key, entries] : found) parts += entries.size();
  return owners_in(found).size() * (order_.size() + 1) + parts;
}

void ListedNames::match(const Json& config, std::vector<std::string>& notes) {
  ModelNames model(config);
  const bool all_stored = stored_.size() == names_.size();
  const bool has_others = std::ranges::any_of(
      order_, [&](const SafetensorsEntry* entry) { return owner_of(entry->name).empty(); });
  const bool known = model.is_known(), complete = model.is_complete();
  if (model.renames() || (known && has_others)) {
    found_ = mapped(model);
    stored_ = owners_in(found_);
    models_.push_back(std::move(model));
  } else if (!all_stored && has_others && !known) {
    match_by_class(notes);
  }
  if (stored_.size() < names_.size() && has_others && !(known && complete)) match_by_ending(notes);
  count_experts(config);
}

void ListedNames::match_by_class(std::vector<std::string>& notes) {
  const auto is_new = [&](const std::string& key) {
    const std::string_view owner = owner_of(key);
    return !owner.empty() && !stored_.contains(owner);
  };
  std::vector<const SafetensorsEntry*> unowned;
  for (const SafetensorsEntry* entry : order_)
    if (owner_of(entry->name).empty()) unowned.push_back(entry);
  std::optional<Found> best;
  std::string best_class;
  size_t most = 0;
  bool ambiguous = false;
  for (const auto& [name, renames] : ModelNames::different_renames()) {
    ModelNames model = renames;
    const bool helps = std::ranges::any_of(unowned, [&](const SafetensorsEntry* entry) {
      return is_new(model.in_memory(entry->name, is_new).name);
    });
    if (!helps) continue;
    Found found = mapped(model);
    const size_t count = explained(found);
    const auto same = [](const std::vector<StoredEntry>& a, const std::vector<StoredEntry>& b) {
      return std::ranges::equal(a, b, {}, &StoredEntry::entry, &StoredEntry::entry);
    };
    const auto equal = [&] {
      return std::ranges::equal(*best, found, [&](const auto& a, const auto& b) {
        return a.first == b.first && same(a.second, b.second);
      });
    };
    if (best && count == most) ambiguous = ambiguous || !equal();
    if (best && count <= most) continue;
    ambiguous = false;
    most = count;
    best_class = name;
    best = std::move(found);
    models_.push_back(std::move(model));
  }
  if (!best || ambiguous) return;
  found_ = std::move(*best);
  stored_ = owners_in(found_);
  notes.push_back(
      "the names on disk are not those that tensor_names lists: they are matched by transformers' renames "
      "for " +
      best_class + " and its like");
}

// One to one: each name and each entry is the only one of its kind with the longest common ending.
void ListedNames::match_by_ending(std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::pair<std::string, const SafetensorsEntry*>>>
      stems;  // parts by name on disk
  std::set<const SafetensorsEntry*> used;
  for (const auto& [key, parts] : found_)
    for (const StoredEntry& part : parts) used.insert(part.entry);
  for (const SafetensorsEntry* entry : order_) {
    if (used.contains(entry) || (found_.empty() && !owner_of(entry->name).empty())) continue;
    const auto [stem, part] = stem_of(entry->name);
    stems[stem].emplace_back(part, entry);
  }
  std::map<std::string_view, std::vector<std::string_view>> by_last, names_by_last;
  for (const auto& [stem, parts] : stems) by_last[components_of(stem).back()].push_back(stem);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string_view name : names_)
    if (!stored_.contains(name)) names_by_last[components_of(name).back()].push_back(name);
  const auto only_best = [&](std::string_view of,
                             const std::vector<std::string_view>& among) -> std::string_view {
    size_t longest = 1;  // the parameter's name by itself says nothing
    std::string_view best;
    for (std::string_view other : among) {
      budget_.take_steps(1);
      const size_t common = common_ending(of, other);
      if (common == longest) best = {};
      if (common > longest) best = other;
      longest = std::max(longest, common);
    }
    return best;
  };
  for (const auto& [last, names] : names_by_last) {
    const auto stored = by_last.find(last);
    if (stored == by_last.end()) continue;
    for (std::string_view name : names) {
      const std::string_view best = only_best(name, stored->second);
      if (!best.empty() && only_best(best, names) == name) pairs.emplace_back(name, best);
    }
  }
  if (pairs.empty()) return;
  if (found_.empty())
    for (const SafetensorsEntry* entry : order_)
      if (!owner_of(entry->name).empty()) found_[entry->name].push_back({entry});
  for (const auto& [name, stem] : pairs) {
    for (const auto& [part, entry] : stems[stem])
      found_[part.empty() ? plain_key(name, keys_) : part_prefix(name, keys_) + part].push_back({entry});
    stored_.insert(name);
  }
  notes.push_back(in_count(pairs.size(), "name") +
                  " on disk matched with the names that tensor_names lists by their ends: " +
                  pairs[0].second + " is " + pairs[0].first + (pairs.size() > 1 ? ", ..." : ""));
}

// The name on disk and the part's name, empty for a plain tensor.
std::pair<std::string, std::string> ListedNames::stem_of(const std::string& entry) const {
  if (keys_ == SafetensorsKeys::colon) {
    const size_t colon = entry.rfind(':');
    if (colon == std::string::npos) return {entry, ""};
    const std::string part = entry.substr(colon + 1);
    return {entry.substr(0, colon), part == "_data" ? "" : part};
  }
  constexpr std::string_view kParts[] = {"_scale_and_zero",
                                         "_act_quant_zero_point",
                                         "_act_quant_scale",
                                         "_act_per_tensor_scale",
                                         "_per_tensor_scale",
                                         "_act_pre_scale",
                                         "_group_scale",
                                         "_row_scale",
                                         "_zero_point",
                                         "_qdata",
                                         "_scale"};
  const size_t dot = entry.rfind("._");
  if (dot == std::string::npos) return {entry, ""};
  for (std::string_view part : kParts)
    if (entry.ends_with(part) && entry.size() > dot + 2 + part.size())
      return {entry.substr(0, dot + 1) + entry.substr(dot + 2, entry.size() - dot - 2 - part.size()),
              std::string(part.substr(1))};
  return {entry, ""};
}

std::vector<StoredEntry> ListedNames::find(const std::string& key) const {
  if (!found_.empty()) {
    const auto found = found_.find(key);
    return found == found_.end() ? std::vector<StoredEntry>() : found->second;
  }
  const SafetensorsEntry* entry = entries_.find(key);
  return entry == nullptr ? std::vector<StoredEntry>() : std::vector<StoredEntry>{{entry}};
}

bool ListedNames::is_stored(std::string_view name) const { return stored_.contains(name); }

std::string ListedNames::name_on_disk(const std::string& entry, std::string_view part) const {
  if (part.empty()) return keys_ == SafetensorsKeys::colon ? entry.substr(0, entry.rfind(':')) : entry;
  const std::string prefix = entry.substr(0, entry.size() - part.size());
  if (keys_ == SafetensorsKeys::colon) return prefix.substr(0, prefix.size() - 1);
  const size_t dot = prefix.rfind("._");
  return prefix.substr(0, dot + 1) + prefix.substr(dot + 2, prefix.size() - dot - 3);
}

// The experts of a module are as many as any of its tensors has, and at least as many as config.json says.
void ListedNames::count_experts(const Json& config) {
  size_t configured = 0;
  const Json text = config.is_object() ? config.value("text_config", Json()) : Json();
  for (const Json* part : {&config, &text})
    for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"})
      if (part->is_object() && part->contains(key) && (*part)[key].is_number_unsigned())
        configured = std::min(configured == 0 ? kMaxExperts : configured, (*part)[key].get<size_t>());
  for (const auto& [key, parts] : found_)
    for (const auto& [source, names] : merged_names(parts)) {
      size_t& count = experts_[key.substr(0, key.rfind('.'))];
      count = std::max(count, std::min(configured, kMaxExperts));
      if (const std::optional<Numbered> found = numbered(names))
        count = std::max(count, *found->numbers.rbegin() + 1);
    }
}

std::string ListedNames::what_is_missing(std::span<const StoredEntry> parts, const std::string& key) const {
  const NameTransform& conversion = *parts[0].conversion;
  std::set<size_t> sources;
  for (const StoredEntry& part : parts) sources.insert(part.source);
  // Not every file has the scales of codes that a conversion dequantizes.
  if (const size_t lost = conversion.sources.size() - sources.size();
      lost > 0 && !does(conversion, "Inkling2LoopDequantizeExperts"))
    return in_count(lost, "tensor") + " beside " + parts[0].entry->name + (lost == 1 ? " is" : " are") +
           " missing";
  for (const auto& [source, names] : merged_names(parts)) {
    const std::optional<Numbered> found = numbered(names);
    const auto count = experts_.find(key.substr(0, key.rfind('.')));
    for (size_t i = 0; found && count != experts_.end() && i < count->second; ++i)
      if (!found->numbers.contains(i)) return with_number(names[0], found->place, i) + " is missing";
  }
  return "";
}

}  // namespace qcts
