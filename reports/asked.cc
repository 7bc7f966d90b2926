// SPDX-License-Identifier: BSD-3-Clause
#include "reports/asked.h"

#include <stdexcept>
#include <utility>

namespace qcts {
namespace {

constexpr std::pair<const char*, std::string Asked::*> kWords[] = {
    {"family", &Asked::family},         {"w_dtype", &Asked::w_dtype},    {"x_dtype", &Asked::x_dtype},
    {"y_dtype", &Asked::y_dtype},       {"policy", &Asked::policy},      {"layout", &Asked::layout},
    {"bias_dtype", &Asked::bias_dtype}, {"container", &Asked::container}};
constexpr std::pair<const char*, int64_t Asked::*> kSizes[] = {
    {"n", &Asked::n}, {"k", &Asked::k}, {"group", &Asked::group}};

}  // namespace

nlohmann::ordered_json to_json(const Asked& asked) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, field] : kWords)
    if (!(asked.*field).empty()) json[name] = asked.*field;
  if (asked.m) json["m"] = *asked.m;
  for (const auto& [name, field] : kSizes)
    if (asked.*field != 0) json[name] = asked.*field;
  return json;
}

Asked asked_from_json(const nlohmann::ordered_json& json) {
  if (!json.is_object()) throw std::runtime_error("verdict: field 'asked' is not an object");
  Asked asked;
  const auto wrong = [](const char* name) {
    return std::runtime_error(std::string("verdict: field 'asked.") + name + "' has the wrong type");
  };
  for (const auto& [name, field] : kWords) {
    if (!json.contains(name)) continue;
    if (!json[name].is_string()) throw wrong(name);
    asked.*field = json[name];
  }
  const auto size = [&](const char* name) -> std::optional<int64_t> {
    if (!json.contains(name)) return std::nullopt;
    if (!json[name].is_number_integer()) throw wrong(name);
    return json[name].get<int64_t>();
  };
  asked.m = size("m");
  for (const auto& [name, field] : kSizes) asked.*field = size(name).value_or(0);
  return asked;
}

}  // namespace qcts
