// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/joins/join.h"

#include <algorithm>

namespace qcts {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;  // so that no sum of sizes overflows

}  // namespace

void leave_apart(const std::string& why) { throw NotJoined(NotJoined::Cause::not_read, why); }
void contradict_layer(const std::string& why) { throw NotJoined(NotJoined::Cause::contradiction, why); }

const Tensor* LayerParts::find(std::string_view ending) {
  const std::string name =
      stem_.empty() && ending.starts_with('.') ? std::string(ending.substr(1)) : stem_ + std::string(ending);
  const auto found = places_.find(name);
  if (found == places_.end()) return nullptr;
  used_.emplace(found->second, ending.empty()
                                   ? "weight"
                                   : ending.substr(ending.starts_with('.') || ending.starts_with('_')));
  return &tensors_[found->second].payload[0].tensor;
}

const Tensor& LayerParts::need(std::string_view ending, std::initializer_list<DType> dtypes) {
  const Tensor* part = find(ending);
  if (part == nullptr) leave_apart("it has no part " + std::string(ending.substr(1)));
  if (std::ranges::find(dtypes, part->dtype) == dtypes.end())
    leave_apart(std::string(ending.substr(1)) + " is " + std::string(dtype_name(part->dtype)));
  return *part;
}

void LayerParts::lack(const std::string& why) const {
  if (is_whole_) contradict_layer(why);
  leave_apart(why);
}

void LayerParts::require_no_others(std::initializer_list<std::string_view> words,
                                   std::string_view below) const {
  const std::string module = stem_ + std::string(below);
  const std::string prefix =
      module.empty() ? "" : module.substr(stem_.empty() && module.starts_with('.')) + ".";
  for (auto place = places_.lower_bound(prefix); place != places_.end() && place->first.starts_with(prefix);
       ++place) {
    const std::string_view word = place->first.substr(prefix.size());
    if (word.find('.') != word.npos || used_.contains(place->second)) continue;
    if (std::ranges::find(words, word) == words.end())
      leave_apart("its part " + std::string(word) + " is not known");
  }
}

std::string json_text(const nlohmann::ordered_json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int64_t> json_integer(const nlohmann::ordered_json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const auto number = found->get<int64_t>();
  if (number < -kLargestSize || number > kLargestSize) return std::nullopt;
  return number;
}

std::string lacks_integer(const nlohmann::ordered_json& object, std::string_view key) {
  const bool absent = !object.is_object() || !object.contains(key) || object[key].is_null();
  return absent ? "config.json has no " + std::string(key)
                : std::string(key) + " of config.json is not an integer";
}

std::optional<bool> json_flag(const nlohmann::ordered_json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

std::optional<std::pair<int64_t, int64_t>> json_pair(const nlohmann::ordered_json& object,
                                                     std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_array() || found->size() != 2) return std::nullopt;
  for (const auto& item : *found)
    if (!item.is_number_integer() || item.get<int64_t>() <= 0 || item.get<int64_t>() > kLargestSize)
      return std::nullopt;
  return std::pair((*found)[0].get<int64_t>(), (*found)[1].get<int64_t>());
}

bool json_lacks(const nlohmann::ordered_json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() || found->is_null() ||
         ((found->is_object() || found->is_array()) && found->empty());
}

CodeMatrix rows_of_codes(const Tensor& words, int bits, CodeKind kind, int64_t rows, int64_t columns) {
  CodeMatrix matrix;
  matrix.words = words;
  matrix.word_bits = static_cast<int>(dtype_bits(words.dtype));
  matrix.bits = bits;
  matrix.kind = kind;
  matrix.lines = rows;
  matrix.length = columns;
  matrix.line_stride = matrix.line_words();
  return matrix;
}

void finish_coded(CodedWeight& weight, std::initializer_list<const Tensor*> others) {
  if (weight.rows <= 0 || weight.columns <= 0) leave_apart("it has no elements");
  if (const std::string text = coded_contradiction(weight); !text.empty()) contradict_layer(text);
  const DType scale = weight.scales.values.dtype;
  if (!weight.scales.nested && (scale == DType::uint8 || scale == DType::float8_e8m0fnu)) {
    std::vector<std::byte> scratch;
    if (std::ranges::count(row_major_view(weight.scales.values, scratch), std::byte{255}) != 0)
      contradict_layer("a scale is 255, which is not a number");
  }
  weight.formula_bytes = formula_bytes_of(weight);
  for (const Tensor* part : others)
    if (part != nullptr) weight.formula_bytes += bytes_of(part->dtype, part->shape);
}

}  // namespace qcts
