// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/json_values.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "reference/comparison/words.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepestJson = 64;

std::string json_words(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_array()) return "list of " + std::to_string(value.size());
  if (value.is_object()) return "object of " + std::to_string(value.size());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_same_value(const Json& a, const Json& b) {
  if (a.is_number_integer() && b.is_number_integer()) return a == b;
  if (a.type() != b.type()) return false;
  if (a.is_number_float())
    return std::bit_cast<uint64_t>(a.get<double>()) == std::bit_cast<uint64_t>(b.get<double>());
  return a == b;
}

// An object or an array; nullopt for anything else, and for what is nested too deep.
std::optional<Json> structured(const std::string& text) {
  bool deep = false;
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepestJson;
    return !deep;
  };
  Json value = Json::parse(text, shallow, false);
  if (deep || value.is_discarded() || !value.is_structured()) return std::nullopt;
  return value;
}

void compare_objects(const std::string& path, const Json& a, const Json& b, ContentFindings& out) {
  std::unordered_map<std::string, const Json*> others;
  for (const auto& [key, value] : b.items()) others.emplace(key, &value);
  std::vector<std::string> order_a, order_b;
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : a.items()) {
    const auto other = others.find(key);
    if (other == others.end()) {
      out.different.add({below(key), "", json_words(value), "absent"});
      continue;
    }
    compare_json(below(key), value, *other->second, out);
    order_a.push_back(key);
    others.erase(other);
  }
  for (const auto& [key, value] : b.items()) {
    if (others.contains(key))
      out.different.add({below(key), "", "absent", json_words(value)});
    else
      order_b.push_back(key);
  }
  const auto [x, y] = std::ranges::mismatch(order_a, order_b);
  if (x != order_a.end() && y != order_b.end()) out.spelling.add({path, "order of the keys", *x, *y});
}

}  // namespace

void compare_json(const std::string& path, const Json& a, const Json& b, ContentFindings& out) {
  if (a.is_object() && b.is_object()) return compare_objects(path, a, b, out);
  if (a.is_array() && b.is_array()) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      compare_json(path + "[" + std::to_string(i) + "]", a[i], b[i], out);
    if (a.size() != b.size())
      out.different.add({path, "length", std::to_string(a.size()), std::to_string(b.size())});
    return;
  }
  if (is_same_value(a, b)) return;
  if (a.is_string() && b.is_string()) {
    auto [left, right] = in_quotes_both(a.get_ref<const std::string&>(), b.get_ref<const std::string&>());
    return out.different.add({path, "", std::move(left), std::move(right)});
  }
  out.different.add({path, "", json_words(a), json_words(b)});
}

void compare_json_texts(const std::string& path, const std::string& a, const std::string& b,
                        ContentFindings& out) {
  if (a == b) return;
  const std::optional<Json> x = structured(a), y = structured(b);
  auto [left, right] = in_quotes_both(a, b);
  if (!x || !y) return out.different.add({path, "", std::move(left), std::move(right)});
  const uint64_t before = out.different.count() + out.spelling.count();
  compare_json(path, *x, *y, out);
  if (out.different.count() + out.spelling.count() == before)
    out.spelling.add({path, "JSON text", std::move(left), std::move(right)});
}

}  // namespace qcts
