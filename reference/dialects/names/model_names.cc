// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/names/model_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "reference/dialects/names/name_rows.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::string said_text(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto value = object.find(key);
  return value != object.end() && value->is_string() ? value->get<std::string>() : "";
}

Json config_part(const Json& config, const std::string& dotted) {
  Json part = config;
  for (size_t at = 0; at <= dotted.size() && part.is_object();) {
    const size_t end = std::min(dotted.find('.', at), dotted.size());
    part = part.value(dotted.substr(at, end - at), Json());
    at = end + 1;
  }
  return part;
}

// Returns whether config.json ties the embeddings, or the default of its class.
bool does_tie(const Json& config, const std::string& model_type, bool otherwise) {
  if (const std::optional<bool> said = says_tied(config)) return *said;
  const Json row = name_row("m:", model_type);
  return row.is_object() ? row.value("tie", false) : otherwise;
}

NameTransform transform_of(const Json& row) {
  std::vector<std::string> branches;
  std::vector<size_t> sources;
  for (const Json& branch : row["from"]) {
    sources.push_back(branch[0]);
    branches.push_back(branch[1]);
  }
  NameTransform made{NamePattern(branches),
                     std::move(sources),
                     row["to"],
                     row.value("ops", std::vector<std::string>()),
                     row.value("group", false),
                     row.value("pairs", false),
                     std::nullopt,
                     {}};
  if (row.contains("offset")) made.offset = row["offset"].get<int64_t>();
  return made;
}

std::string replaced_once(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The text instead of a match. Only \1 and \2 occur.
std::string replacement_of(const NameTransform& transform, const NameMatch& match, size_t source) {
  std::string text = transform.to[transform.group ? source : 0];
  for (size_t group = 1; group < match.groups.size(); ++group) {
    std::string found(match.groups[group]);
    if (transform.offset && group == 1) found = std::to_string(std::stoll(found) + *transform.offset);
    text = replaced_once(std::move(text), "\\" + std::to_string(group), found);
  }
  return text;
}

// LayerPairCollapse: an attention block and an mlp block of the file are one layer.
std::optional<std::string> collapsed_pair(const std::string& name) {
  static const NamePattern kBlock({R"(layers\.(\d+)\.(mixer|attn_alpha|mlp_alpha)(?!\w))"});
  const std::optional<NameMatch> match = kBlock.search(name);
  if (!match || match->groups[1].size() > 9) return std::nullopt;
  const int64_t index = std::stoll(std::string(match->groups[1]));
  const std::string_view word = match->groups[2];
  const std::string_view part = word == "attn_alpha"  ? "lambda_1"
                                : word == "mlp_alpha" ? "lambda_2"
                                : index % 2 == 0      ? "self_attn"
                                                      : "mlp";
  return name.substr(0, match->begin) + "layers." + std::to_string(index / 2) + "." + std::string(part) +
         name.substr(match->end);
}

// Returns where the name begins in the model that a transform belongs to; nullopt if it is outside.
std::optional<size_t> begin_within(const NameTransform& transform, std::string_view name) {
  if (transform.begins.empty()) return 0;
  for (const std::string& begin : transform.begins)
    if (name.starts_with(begin)) return begin.size();
  return std::nullopt;
}

bool lies_at_or_below(std::string_view path, std::string_view above) {
  return above.empty() || path.starts_with(std::string(above) + ".");
}

bool is_decimal(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Names of models that begin like a pattern of _tied_weights_keys.
std::vector<std::string> beginning_with(const std::string& pattern, std::span<const std::string> names) {
  const NamePattern begin({"^" + pattern});
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (begin.search(name)) found.push_back(name);
  std::ranges::sort(found);
  return found;
}

}  // namespace

ModelNames::ModelNames(const Json& config) {
  const Json classes = config.is_object() ? config.value("architectures", Json()) : Json();
  const std::string model_type = said_text(config, "model_type");
  const bool named = classes.is_array() && !classes.empty() && classes[0].is_string();
  const std::string name =
      named ? classes[0].get<std::string>() : said_text(name_row("m:", model_type), "base");
  ties_weights_ = does_tie(config, model_type, true);
  knows_class_ = !name_row("c:", name).is_null();
  known_ = knows_class_ || !name_row("m:", model_type).is_null();
  is_base_ = said_text(name_row("m:", model_type), "base") == name;
  if (known_) add_class(name, model_type, config, "", 0);
  active_.resize(transforms_.size());
}

ModelNames ModelNames::of_class(std::string_view name) {
  ModelNames names;
  names.known_ = names.knows_class_ = true;
  names.add_class(std::string(name), said_text(name_row("c:", std::string(name)), "type"), Json::object(), "",
                  0);
  names.active_.resize(names.transforms_.size());
  return names;
}

std::vector<std::string> ModelNames::renamed_classes() {
  std::vector<std::string> found;
  for (const NameRow& row : name_rows())
    if (row.key.starts_with("t:") ||
        (row.key.starts_with("c:") && row.json.find("\"models\"") != row.json.npos))
      if (std::string name(row.key.substr(2)); std::ranges::find(found, name) == found.end())
        found.push_back(std::move(name));
  return found;
}

const std::vector<ModelNames::ClassNames>& ModelNames::different_renames() {
  static const std::vector<ClassNames> kDifferent = [] {
    std::vector<ClassNames> found;
    std::set<std::string> known;
    for (const std::string& name : renamed_classes()) {
      ModelNames model = of_class(name);
      if (known.insert(model.identity_).second) found.push_back({name, std::move(model)});
    }
    return found;
  }();
  return kDifferent;
}

void ModelNames::add_transforms(const std::string& name, const std::string& model_type,
                                const std::string& path) {
  const auto paths_of = [&](const std::string& key) -> std::vector<std::string>& {
    for (auto& [known, paths] : seen_)
      if (known == key) return paths;
    return seen_.emplace_back(key, std::vector<std::string>()).second;
  };
  const auto is_covered = [&](const std::string& key) {
    return std::ranges::any_of(paths_of(key),
                               [&](const std::string& above) { return lies_at_or_below(path, above); });
  };
  if (is_covered(name)) return;
  Json rows = name_row("t:", name);
  const bool by_class = !rows.is_null();
  if (!by_class) {
    if (model_type.empty() || is_covered(model_type)) return;
    rows = name_row("t:", model_type);
    if (rows.is_null()) return;
  }
  for (const Json& row : rows) {
    const auto made = std::make_shared<NameTransform>(transform_of(row));
    if (!path.empty()) {
      std::string scope = path;
      if (!base_prefix_.empty() && scope.starts_with(base_prefix_)) scope.erase(0, base_prefix_.size());
      if (scope.starts_with(".")) scope.erase(0, 1);
      if (!scope.empty()) scope += ".";
      made->begins = {base_prefix_.empty() ? scope : base_prefix_ + "." + scope, scope};
    }
    transforms_.push_back(made);
  }
  identity_ += (by_class ? name : model_type) + "@" + path + "\n";
  paths_of(name).push_back(path);
  if (!by_class) paths_of(model_type).push_back(path);
}

// `below` is empty, or a path with a dot at its end.
void ModelNames::add_ties(const Json& ties, const std::string& below) {
  const auto within = [&](const std::string& pattern) {
    return below + (!below.empty() && pattern.starts_with("^") ? pattern.substr(1) : pattern);
  };
  for (const auto& [target, source] : ties.items()) ties_.push_back({within(target), within(source)});
}

void ModelNames::add_class(const std::string& name, const std::string& model_type, const Json& config,
                           const std::string& path, int depth) {
  constexpr int kMaxDepth = 8;
  if (depth > kMaxDepth) return;
  Json row = name_row("c:", name);
  if (row.is_null()) row = {{"prefix", "model"}};
  complete_ = complete_ && !row.contains("unbuilt");
  if (path.empty()) identity_ = base_prefix_ = said_text(row, "prefix");
  if (path.empty()) identity_ += "\n";
  add_transforms(name, model_type, path);
  const std::string below = path.empty() ? "" : path + ".";
  if (does_tie(config, model_type, true)) add_ties(row.value("ties", Json::object()), below);
  for (const Json& model : row.value("within", Json::array())) {
    const std::string key = model[1];
    const Json part = key.empty() ? config : config_part(config, key);
    const std::string type = key.empty() ? model_type : said_text(part, "model_type");
    if (does_tie(part, type, true)) add_ties(model[2], below + model[0].get<std::string>() + ".");
  }
  for (const Json& key : row.value("unsaved", Json::array()))
    never_saved_.push_back(below + key.get<std::string>());
  for (const Json& model : row.value("models", Json::array())) {
    const std::string at = below + model[0].get<std::string>();
    if (model[2].is_string()) {
      add_transforms(model[1], model[2], at);
      continue;
    }
    const Json part = config_part(config, model[3]);
    const std::string type = said_text(part, "model_type");
    const std::string inner = said_text(name_row("m:", type), model[1].is_null() ? "base" : "lm");
    if (!inner.empty()) add_class(inner, type, part, at, depth + 1);
  }
}

std::string ModelNames::renamed(const std::string& name) {
  std::string text = name;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    const NameTransform& transform = *transforms_[i];
    if (transform.is_conversion()) continue;
    if (transform.pairs) {
      if (std::optional<std::string> collapsed = collapsed_pair(text)) text = std::move(*collapsed);
      continue;
    }
    const std::optional<size_t> begin = begin_within(transform, text);
    if (!begin) continue;
    const std::string_view rest = std::string_view(text).substr(*begin);
    const std::optional<NameMatch> match = transform.from.search(rest);
    if (!match) continue;
    const size_t source = transform.sources[match->branch];
    if (transform.group && source == 0) active_[i] = true;
    if (transform.group && !active_[i]) continue;
    text = text.substr(0, *begin) +
           replaced_once(std::string(rest), match->groups[0], replacement_of(transform, *match, source));
  }
  return text;
}

MemoryName ModelNames::in_memory(const std::string& on_disk) {
  const std::string name = renamed(on_disk);
  for (const auto& transform : transforms_) {
    if (!transform->is_conversion()) continue;
    const std::optional<size_t> begin = begin_within(*transform, name);
    if (!begin) continue;
    const std::string_view rest = std::string_view(name).substr(*begin);
    const std::optional<NameMatch> match = transform->from.search(rest);
    if (!match) continue;
    const size_t source = transform->sources[match->branch];
    return {name.substr(0, *begin) + replaced_once(std::string(rest), match->groups[0],
                                                   replacement_of(*transform, *match, source)),
            transform.get(), source};
  }
  return {name};
}

MemoryName ModelNames::in_memory(const std::string& on_disk,
                                 const std::function<bool(const std::string&)>& is_name) {
  const auto with_base = [&](MemoryName found) {
    if (base_prefix_.empty()) return found;
    const std::string base = base_prefix_ + ".";
    if (found.name.starts_with(base) && is_name(found.name.substr(base.size())))
      found.name.erase(0, base.size());
    else if (is_name(base + found.name))
      found.name.insert(0, base);
    return found;
  };
  const MemoryName found = with_base(in_memory(on_disk));
  return is_name(found.name) || !is_name(on_disk) ? found : with_base({on_disk});
}

void ModelNames::fit_base(std::vector<MemoryNames>& names) const {
  if (base_prefix_.empty()) return;
  const std::string base = base_prefix_ + ".";
  const auto any = [&](bool begins) {
    return std::ranges::any_of(names, [&](const MemoryNames& name) {
      return !name.names.empty() && name.names[0].starts_with(base) == begins;
    });
  };
  const auto is_head = [&](const std::string& name) {
    return std::ranges::any_of(ties_, [&](const Tie& tie) {
      return name.substr(0, name.find('.')) == tie.target.substr(0, tie.target.find('.'));
    });
  };
  const bool adds = !is_base_ && !any(true), removes = is_base_ && !any(false);
  for (MemoryNames& name : names)
    for (std::string& text : name.names)
      if (removes)
        text.erase(0, base.size());
      else if (adds && !is_head(text))
        text.insert(0, base);
}

std::vector<MemoryNames> memory_names(const Json& config, std::span<const std::string> on_disk) {
  ModelNames model(config);
  std::vector<size_t> order(on_disk.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](size_t a, size_t b) { return natural_less(on_disk[a], on_disk[b]); });
  std::vector<MemoryNames> names(on_disk.size());
  for (const size_t i : order) {
    const MemoryName found = model.in_memory(on_disk[i]);
    names[i].names = ModelNames::targets_of(found);
    names[i].names.insert(names[i].names.begin(), found.name);
    names[i].is_converted = found.conversion != nullptr;
  }
  if (model.is_known()) model.fit_base(names);
  return names;
}

std::vector<std::string> ModelNames::targets_of(const MemoryName& name) {
  std::vector<std::string> targets;
  if (name.conversion == nullptr) return targets;
  for (size_t i = 1; i < name.conversion->to.size(); ++i)
    targets.push_back(replaced_once(name.name, name.conversion->to[0], name.conversion->to[i]));
  return targets;
}

std::vector<TiedName> ModelNames::tied(std::span<const std::string> names) const {
  std::vector<TiedName> found;
  for (const Tie& tie : ties_) {
    const std::vector<std::string> sources = beginning_with(tie.source, names);
    const std::vector<std::string> targets = beginning_with(tie.target, names);
    for (size_t i = 0; i < targets.size() && !sources.empty(); ++i) {
      std::string source = sources[i % sources.size()];
      for (const TiedName& known : found)
        if (known.target == source) source = known.source;
      if (targets[i] != source) found.push_back({targets[i], source});
    }
  }
  return knows_class_ || !ties_weights_ ? found : usual_ties(names, names);
}

std::vector<TiedName> ModelNames::single_ties() const {
  static const NamePattern kSingle({R"(^\^?[A-Za-z0-9_.]+\$?$)"});
  std::vector<TiedName> found;
  const auto plain = [](std::string pattern) {
    std::erase_if(pattern, [](char c) { return c == '^' || c == '$'; });
    return pattern;
  };
  for (const Tie& tie : ties_)
    if (kSingle.search(tie.target) && kSingle.search(tie.source))
      found.push_back({plain(tie.target), plain(tie.source)});
  return found;
}

bool ModelNames::is_never_saved(std::string_view name) const {
  return std::ranges::find(never_saved_, name) != never_saved_.end();
}

bool natural_less(std::string_view a, std::string_view b) {
  while (true) {
    const std::string_view x = a.substr(0, a.find('.')), y = b.substr(0, b.find('.'));
    const bool x_number = is_decimal(x), y_number = is_decimal(y);
    if (x_number != y_number) return x_number;
    if (x_number && x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
    if (x.size() == a.size() || y.size() == b.size()) return a.size() < b.size();
    a.remove_prefix(x.size() + 1);
    b.remove_prefix(y.size() + 1);
  }
}

}  // namespace qcts
