// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check_model.h"

#include <algorithm>
#include <iostream>

#include "suites/base/printable.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownKeys = 20;
constexpr const char* kIndent = "               ";

std::optional<uint64_t> measured_bytes(const Verdict& assign, std::string_view measure) {
  for (const Measure& one : assign.measures)
    if (one.name == measure) return static_cast<uint64_t>(one.value);
  return std::nullopt;
}

Json bytes_json(const Verdict& assign, std::string_view measure) {
  const std::optional<uint64_t> bytes = measured_bytes(assign, measure);
  return bytes ? Json(*bytes) : Json(nullptr);
}

Json keys_json(const std::vector<MatchedKey>& keys) {
  Json list = Json::array();
  for (const MatchedKey& key : keys)
    list.push_back({{"name", key.name}, {"before", key.before}, {"after", key.after}});
  return list;
}

void print_names(const char* title, const std::vector<std::string>& names) {
  for (size_t i = 0; i < std::min(names.size(), kShownKeys); ++i)
    std::cout << kIndent << title << " " << printable(names[i]) << "\n";
  if (names.size() > kShownKeys)
    std::cout << kIndent << "and " << names.size() - kShownKeys << " more " << title << ": --json\n";
}

void print_keys(const char* title, const std::vector<MatchedKey>& keys) {
  for (size_t i = 0; i < std::min(keys.size(), kShownKeys); ++i)
    std::cout << kIndent << title << printable(keys[i].name + ": " + keys[i].before + " -> " + keys[i].after)
              << "\n";
  if (keys.size() > kShownKeys)
    std::cout << kIndent << "and " << keys.size() - kShownKeys << " more: --json\n";
}

}  // namespace

std::string peak_text(const Verdict& assign) {
  const std::optional<uint64_t> peak = measured_bytes(assign, "peak_bytes"),
                                bound = measured_bytes(assign, "peak_bound_bytes");
  return peak && bound ? "peak memory " + grouped(*peak) + " bytes, bound " + grouped(*bound) : "";
}

Json model_json(const KeyMatch& match, const Verdict& assign) {
  return {{"verdict", match.all_matched() ? "pass" : "fail"},
          {"missing", match.missing},
          {"unexpected", match.unexpected},
          {"mismatched", keys_json(match.mismatched)},
          {"peak_bytes", bytes_json(assign, "peak_bytes")},
          {"peak_bound_bytes", bytes_json(assign, "peak_bound_bytes")},
          {"weights", keys_json(match.matched)}};
}

void print_model(const KeyMatch& match, const Verdict& assign) {
  if (match.all_matched())
    std::cout << "pass           model: all keys matched (" << match.matched.size() << ")\n";
  else
    std::cout << "fail           model: " << match.missing.size() << " missing, " << match.unexpected.size()
              << " unexpected, " << match.mismatched.size() << " of another shape\n";
  if (const std::string peak = peak_text(assign); !peak.empty())
    std::cout << kIndent << peak << " while every byte was read\n";
  print_names("missing", match.missing);
  print_names("unexpected", match.unexpected);
  print_keys("another shape ", match.mismatched);
  print_keys("", match.matched);
}

}  // namespace qcts::cli
