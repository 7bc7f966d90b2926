// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check_model.h"

#include <algorithm>
#include <iostream>

#include "suites/base/printable.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownKeys = 20;
constexpr const char* kIndent = "               ";

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

Json model_json(const KeyMatch& match) {
  return {{"verdict", match.all_matched() ? "pass" : "fail"},
          {"missing", match.missing},
          {"unexpected", match.unexpected},
          {"mismatched", keys_json(match.mismatched)},
          {"weights", keys_json(match.matched)}};
}

void print_model(const KeyMatch& match) {
  if (match.all_matched())
    std::cout << "pass           model: all keys matched (" << match.matched.size() << ")\n";
  else
    std::cout << "fail           model: " << match.missing.size() << " missing, " << match.unexpected.size()
              << " unexpected, " << match.mismatched.size() << " of another shape\n";
  print_names("missing", match.missing);
  print_names("unexpected", match.unexpected);
  print_keys("another shape ", match.mismatched);
  print_keys("", match.matched);
}

}  // namespace qcts::cli
