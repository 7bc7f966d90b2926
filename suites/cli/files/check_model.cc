// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check_model.h"

#include <algorithm>

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownKeys = 20;
constexpr size_t kLabel = 15;  // columns, as of the other verdicts

Json keys_json(const std::vector<MatchedKey>& keys) {
  Json list = Json::array();
  for (const MatchedKey& key : keys)
    list.push_back({{"name", key.name}, {"before", key.before}, {"after", key.after}});
  return list;
}

void print_names(const char* title, const std::vector<std::string>& names, Printout& out) {
  for (size_t i = 0; i < std::min(names.size(), kShownKeys); ++i)
    out.item("", kLabel, std::string(title) + " " + names[i]);
  if (names.size() > kShownKeys)
    out.item("", kLabel, "and " + std::to_string(names.size() - kShownKeys) + " more " + title + ": --json");
}

void print_keys(const std::string& title, const std::vector<MatchedKey>& keys, Printout& out) {
  for (size_t i = 0; i < std::min(keys.size(), kShownKeys); ++i)
    out.item("", kLabel, title + keys[i].name + ": " + keys[i].before + " -> " + keys[i].after);
  if (keys.size() > kShownKeys)
    out.item("", kLabel, "and " + std::to_string(keys.size() - kShownKeys) + " more: --json");
}

}  // namespace

Json model_json(const KeyMatch& match) {
  return {{"verdict", match.all_matched() ? "pass" : "fail"},
          {"missing", match.missing},
          {"unexpected", match.unexpected},
          {"mismatched", keys_json(match.mismatched)},
          {"weights", keys_json(match.matched)}};
}

void print_model(const KeyMatch& match, Printout& out) {
  if (match.all_matched())
    out.item("pass", kLabel, "model: all keys matched (" + std::to_string(match.matched.size()) + ")");
  else
    out.item("fail", kLabel,
             "model: " + std::to_string(match.missing.size()) + " missing, " +
                 std::to_string(match.unexpected.size()) + " unexpected, " +
                 std::to_string(match.mismatched.size()) + " of another shape");
  print_names("missing", match.missing, out);
  print_names("unexpected", match.unexpected, out);
  print_keys("another shape ", match.mismatched, out);
  print_keys("", match.matched, out);
}

}  // namespace qcts::cli
