// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/foreign/foreign.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "reference/dialects/dialects.h"
#include "reference/dialects/directory/directory_files.h"
#include "reference/dialects/foreign/scaled_codes.h"
#include "reference/dialects/foreign/words.h"
#include "reference/formats/io/name_order.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t first = 0; first <= text.size();) {
    const size_t end = std::min(text.find(at, first), text.size());
    if (end > first) parts.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return parts;
}

struct PartPattern {
  std::string_view ending;
  uint64_t dtypes = ~uint64_t{0};  // bit d stands for DType d
  char mark = ' ';                 // '!', '?'

  explicit PartPattern(std::string_view text) {
    if (text.front() == '!' || text.front() == '?') {
      mark = text.front();
      text.remove_prefix(1);
    }
    const size_t colon = text.rfind(':');
    ending = text.substr(0, colon);
    if (colon == text.npos) return;
    const std::vector<std::string_view> words = split(text.substr(colon + 1), ',');
    for (unsigned d = 0; d < 64; ++d) {
      const std::string_view word = dtype_word(static_cast<DType>(d));
      if (std::ranges::find(words, word) == words.end()) dtypes &= ~(uint64_t{1} << d);
    }
  }

  bool fits(std::string_view name, DType dtype) const {
    return (dtypes >> static_cast<unsigned>(dtype) & 1) != 0 &&
           (ending.empty() || (name.back() == ending.back() && name.ends_with(ending)));
  }
};

struct WeightPattern {
  const ForeignFormat* format;
  std::vector<PartPattern> parts;
};

std::vector<WeightPattern> weight_patterns() {
  std::vector<WeightPattern> patterns;
  for (const ForeignFormat& format : foreign_formats())
    for (std::string_view alternative : split(format.parts, '|')) {
      WeightPattern& pattern = patterns.emplace_back(WeightPattern{&format, {}});
      for (std::string_view part : split(alternative, ' ')) pattern.parts.emplace_back(part);
    }
  return patterns;
}

bool may_hold_codes(const NamedTensor& tensor) {
  switch (tensor.dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      return false;
    default:
      return !tensor.shape.empty();
  }
}

bool has_plain_data(const NamedTensor& tensor) {
  const std::string_view type = tensor.type;
  return tensor.payload.size() == 1 && (type == "Tensor" || type == "Parameter") &&
         std::string_view(tensor.payload[0].name) == "data";
}

class ForeignNamer {
 public:
  ForeignNamer(Checkpoint& checkpoint, const std::string& method, const std::string& why, ReadBudget& budget)
      : checkpoint_(checkpoint), method_(method), why_(why), by_method_(foreign_by_method(method)) {
    budget.take_bytes(kPlaceBytes * checkpoint.tensors.size());
    budget.give_back_bytes(kPlaceBytes * checkpoint.tensors.size());
    places_.reserve(checkpoint.tensors.size());
    for (NamedTensor& tensor : checkpoint.tensors)
      if (has_plain_data(tensor)) places_.emplace_back(tensor.name, &tensor);
    sort_by_name(places_, [](const Place& place) { return place.first; });
    drop_patterns_without_parts();
  }

  void name() {
    for (NamedTensor& tensor : checkpoint_.tensors)
      if (has_plain_data(tensor)) match(tensor);
    find_scaled_codes();
    mark_layers();
    for (NamedTensor& tensor : checkpoint_.tensors) report_unscaled(tensor);
    report_format();
  }

 private:
  using Place = CodeSearch::Place;
  using Layer = std::pair<std::string_view, const ForeignFormat*>;
  // In places_, in the two tables of CodeSearch, and twice in layers_, which grow by doubling.
  static constexpr uint64_t kPlaceBytes = 24 + 80 + 64 + 4 * 24;

  // Drops the patterns that need a part whose ending no tensor's name has. Most tensors fit the first part of
  // many patterns, and each would search the names for the others: a quarter of the time to read 200,000
  // tensors.
  void drop_patterns_without_parts() {
    std::map<std::string_view, bool> seen;
    std::array<std::vector<std::pair<const std::string_view, bool>*>, 256> by_last_char;
    for (const WeightPattern& pattern : patterns_)
      for (const PartPattern& part : pattern.parts) seen.emplace(part.ending, part.ending.empty());
    for (auto& ending : seen)
      if (!ending.second) by_last_char[static_cast<unsigned char>(ending.first.back())].push_back(&ending);
    for (const Place& place : places_)
      if (!place.first.empty())
        for (auto* ending : by_last_char[static_cast<unsigned char>(place.first.back())])
          ending->second = ending->second || ends_part(place.first, ending->first);
    std::erase_if(patterns_, [&](const WeightPattern& pattern) {
      return std::any_of(pattern.parts.begin() + 1, pattern.parts.end(),
                         [&](const PartPattern& part) { return part.mark == ' ' && !seen.at(part.ending); });
    });
  }

  // Endings begin with a dot, which a tensor of no module lacks.
  static bool ends_part(std::string_view name, std::string_view ending) {
    return name.ends_with(ending) || (ending.front() == '.' && name == ending.substr(1));
  }

  // Searches outwards from places_[near]: the parts of a layer have neighboring names.
  NamedTensor* find(std::string_view name, size_t near) const {
    size_t low = near, high = near;  // the place of the name is in [low, high]
    for (size_t step = 1; low > 0 && places_[low].first > name; step *= 2)
      high = std::exchange(low, low - std::min(low, step));
    for (size_t step = 1; high < places_.size() && places_[high].first < name; step *= 2)
      low = std::exchange(high, std::min(places_.size(), high + step));
    const auto begin = places_.begin();
    const auto found =
        std::lower_bound(begin + static_cast<ptrdiff_t>(low), begin + static_cast<ptrdiff_t>(high), name,
                         [](const Place& place, std::string_view wanted) { return place.first < wanted; });
    return found != places_.end() && found->first == name ? found->second : nullptr;
  }

  size_t place_of(std::string_view name) const {
    return static_cast<size_t>(std::ranges::lower_bound(places_, name, {}, &Place::first) - places_.begin());
  }

  // A stem begins with a dot, so that the endings fit tensors of no module too.
  NamedTensor* find_part(const std::string& stem, std::string_view ending, size_t near) {
    wanted_ = stem;
    wanted_ += ending;
    return find(std::string_view(wanted_).substr(1), near);
  }

  void match(NamedTensor& codes) {
    if (codes.shape.empty()) return;
    const std::string name = "." + codes.name;
    std::optional<size_t> place;
    for (const WeightPattern& pattern : patterns_) {
      const PartPattern& first = pattern.parts.front();
      if (!first.fits(name, codes.dtype)) continue;
      if (!place) place = place_of(codes.name);
      const size_t near = *place;
      const std::string stem = name.substr(0, name.size() - first.ending.size());
      const auto lacks = [&](const PartPattern& part) {
        return part.mark == ' ' && find_part(stem, part.ending, near) == nullptr;
      };
      if (std::any_of(pattern.parts.begin() + 1, pattern.parts.end(), lacks)) continue;
      return take(codes, pattern, stem, near);
    }
  }

  void take(NamedTensor& codes, const WeightPattern& pattern, const std::string& stem, size_t near) {
    const ForeignFormat& format =
        by_method_ ? *by_method_ : told_by_shape(codes, *pattern.format, stem, near);
    mark(codes, format);
    note_layer(codes, pattern.parts.front().ending, format);
    for (auto part = pattern.parts.begin() + 1; part != pattern.parts.end(); ++part) {
      if (NamedTensor* found = find_part(stem, part->ending, near))
        mark(*found, format);
      else if (part->mark == '!' && !is_shard_)
        contradict(codes.name, "no " + (stem + std::string(part->ending)).substr(1) + " next to it, which " +
                                   std::string(format.name) + " needs");
    }
    ++weights_;
  }

  // Both have scales [groups, n] and pack eight codes per word: GPTQ along k, AWQ along n. AWQ for gemv has
  // words [n, k / 8] and scales [n, groups]; its fast kernel has 16-bit words.
  const ForeignFormat& told_by_shape(const NamedTensor& codes, const ForeignFormat& format,
                                     const std::string& stem, size_t near) {
    const NamedTensor* scales = find_part(stem, ".scales", near);
    if (format.name != "gptq_or_awq" || scales == nullptr || scales->shape.size() != 2 ||
        codes.shape.size() != 2)
      return format;
    const bool by_row = codes.shape[0] == scales->shape[0], by_column = codes.shape[1] == scales->shape[1];
    const bool awq = codes.dtype == DType::int16 || by_row || codes.shape[1] == scales->shape[1] / 8;
    if (by_row && by_column) return format;
    if (awq) return *foreign_by_method("awq");
    return by_column ? *foreign_by_method("gptq") : format;
  }

  void mark(NamedTensor& tensor, const ForeignFormat& format) {
    if (first_ == nullptr) first_ = &format, first_name_ = tensor.name;
    tensor.foreign = format.name;
  }

  void contradict(const std::string& tensor, std::string text) {
    checkpoint_.findings.push_back({CheckpointFinding::Kind::contradiction, tensor, std::move(text)});
  }

  // The module of the codes, all of which belongs to their format; and what is named below the codes.
  void note_layer(const NamedTensor& codes, std::string_view ending, const ForeignFormat& format) {
    layers_.emplace_back(codes.name, &format);
    if (!ending.starts_with('.') || ending.size() > codes.name.size()) return;
    layers_.emplace_back(std::string_view(codes.name).substr(0, codes.name.size() - ending.size()), &format);
  }

  // The tensors below a module, in the order of their names.
  std::span<const Place> below(std::string_view module) const {
    const std::string first = std::string(module) + ".", end = std::string(module) + "/";  // '/' follows '.'
    const auto from = std::ranges::lower_bound(places_, std::string_view(first), {}, &Place::first);
    const auto to = std::ranges::lower_bound(from, places_.end(), std::string_view(end), {}, &Place::first);
    return {from, to};
  }

  // Marks the parts of a layer that no pattern lists, up to two modules deeper: not its bias, and no layer of
  // its own.
  void mark_layers() {
    std::ranges::sort(layers_);
    const auto [first, last] = std::ranges::unique(layers_, {}, &Layer::first);
    layers_.erase(first, last);
    for (const auto& [module, format] : layers_) {
      if (module.empty()) continue;
      std::string_view held;  // the module inside it that is looked at, and whether it has a weight
      bool is_layer = false;
      const std::span<const Place> places = below(module);
      for (auto place = places.begin(); place != places.end(); ++place) {
        const std::string_view rest = place->first.substr(module.size() + 1);
        const std::string_view inner = rest.substr(0, rest.find('.'));
        if (is_deep(rest)) continue;
        if (inner.size() < rest.size() && inner != held) {
          held = inner;
          is_layer = holds_weight(places.subspan(static_cast<size_t>(place - places.begin())), module, inner);
        }
        if (inner.size() < rest.size() && is_layer) continue;
        const std::string_view word = last_part(rest);
        NamedTensor& tensor = *place->second;
        const bool own = is_float(tensor.dtype) &&
                         (word.ends_with("bias") || (tensor.shape.size() > 1 && word == "weight"));
        if (tensor.foreign.empty() && !own) mark(tensor, *format);
      }
    }
  }

  // More than two modules below. Looks at only the first four words: a file may nest thousands.
  static bool is_deep(std::string_view rest) {
    for (int words = 0; words < 3; ++words) {
      const size_t dot = rest.find('.');
      if (dot == rest.npos) return false;
      rest.remove_prefix(dot + 1);
    }
    return true;
  }

  // Has the module "module.inner", at whose first tensor the places begin, a weight?
  static bool holds_weight(std::span<const Place> places, std::string_view module, std::string_view inner) {
    for (const auto& [name, tensor] : places) {
      const std::string_view rest = name.substr(module.size() + 1);
      if (!rest.starts_with(inner) || rest.size() == inner.size() || rest[inner.size()] != '.') return false;
      if (!is_deep(rest) && !tensor->shape.empty() && names_weight(last_part(name))) return true;
    }
    return false;
  }

  // Finds codes that no pattern matched.
  void find_scaled_codes() {
    CodeSearch search(places_);
    const ForeignFormat& format = by_method_ ? *by_method_ : foreign_formats().back();
    std::vector<NamedTensor*> parts;
    for (NamedTensor& tensor : checkpoint_.tensors) {
      if (!has_plain_data(tensor) || !tensor.foreign.empty()) continue;
      const CodeSearch::Found found = search.look_at(tensor);
      if (!found.codes) continue;
      if (!found.scaled && by_method_ != nullptr)
        contradict(tensor.name, "config.json says " + method_ + ", but there is no scale next to it");
      mark(tensor, format);
      if (found.part != nullptr) parts.push_back(found.part);
      layers_.emplace_back(tensor.name, &format);
      const std::string_view word = last_part(tensor.name);
      if (names_weight(word) || hints_at_codes(word)) layers_.emplace_back(module_name(tensor.name), &format);
      search.note_codes(tensor);
      ++weights_;
    }
    for (NamedTensor* part : parts) mark(*part, format);
    for (const auto& [name, tensor] : places_)
      if (tensor->foreign.empty() && names_scale(last_part(name)) && search.has_codes(module_name(name)))
        mark(*tensor, format);
  }

  void report_unscaled(const NamedTensor& tensor) {
    if (!has_plain_data(tensor) || !tensor.foreign.empty() || tensor.shape.size() < 2) return;
    const bool integer_weight = last_part(tensor.name).ends_with("weight") && holds_integers(tensor.dtype);
    if (!is_scaled_dtype(tensor.dtype) && !integer_weight) return;
    if (by_method_ != nullptr || (!method_.empty() && !integer_weight))
      return contradict(tensor.name, "config.json says " + method_ + ", but it is " +
                                         std::string(dtype_name(tensor.dtype)) + " without a scale");
    if (++unscaled_ == 1) first_unscaled_ = &tensor;
  }

  void report_format() {
    if (unscaled_ > 0)
      checkpoint_.warnings.push_back(
          first_unscaled_->name + (unscaled_ > 1 ? " and " + std::to_string(unscaled_ - 1) + " more" : "") +
          ": " +
          (is_scaled_dtype(first_unscaled_->dtype) ? "float8"
                                                   : std::string(dtype_name(first_unscaled_->dtype))) +
          " without a scale, read as plain numbers");
    const bool read =
        std::ranges::any_of(checkpoint_.tensors, [](const auto& t) { return t.coded != nullptr; });
    if (!method_.empty() && by_method_ != nullptr && weights_ == 0 && !read) {
      contradict("", "config.json says " + method_ + ", but no tensor is quantized that way");
    }
    const ForeignFormat* format = by_method_ && weights_ > 0 ? by_method_ : first_;
    if (format == nullptr && (method_.empty() || by_method_ != nullptr)) return;
    const std::string name = format ? std::string(format->name) : method_;
    std::string text = format ? name + " (" + std::string(format->what) + ")" : name + " (config.json)";
    std::string why = why_;
    if (why.empty() && by_method_ == nullptr && is_joined(name))
      why = method_.empty() ? "no config.json says how it is quantized; pass one with --config"
                            : "config.json says " + method_ + ", which qcts does not know";
    text += ", which qcts cannot read" + (why.empty() ? "" : " (" + why + ")");
    if (!first_name_.empty()) {
      text += ": " + first_name_;
      if (weights_ > 1) text += ", " + std::to_string(weights_) + " weights in all";
    }
    checkpoint_.findings.push_back({CheckpointFinding::Kind::foreign, first_name_, text});
    if (checkpoint_.dialect == "plain") checkpoint_.dialect = name;
  }

  Checkpoint& checkpoint_;
  const std::string& method_;
  const std::string& why_;
  const ForeignFormat* by_method_;
  std::vector<WeightPattern> patterns_ = weight_patterns();
  // Sorted: a file can choose names that a hash table holds badly.
  std::vector<Place> places_;
  // A single shard lacks the parts of its layers that are in another shard.
  const bool is_shard_ =
      checkpoint_.format != Format::directory && names_one_of_several(checkpoint_.path.filename().string());
  const ForeignFormat* first_ = nullptr;
  const NamedTensor* first_unscaled_ = nullptr;
  std::string first_name_;
  std::string wanted_;  // by find_part(), which is called too often to allocate
  std::vector<Layer> layers_;
  size_t weights_ = 0, unscaled_ = 0;
};

}  // namespace

const ForeignFormat* foreign_by_method(std::string_view method) {
  for (const ForeignFormat& format : foreign_formats())
    for (std::string_view word : split(format.methods, ' '))
      if (word == method) return &format;
  return nullptr;
}

void name_foreign(Checkpoint& checkpoint, const std::string& method, const std::string& why,
                  ReadBudget& budget) {
  // Most models hold only floats, even the largest, and need no search.
  if (!method.empty() || std::ranges::any_of(checkpoint.tensors, may_hold_codes))
    ForeignNamer(checkpoint, method, why, budget).name();
  report_lone_parts(checkpoint, method, budget);
}

}  // namespace qcts
