// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check/check_model.h"

#include <algorithm>

#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownKeys = 20;
constexpr size_t kLabel = 15;  // columns, as of the other verdicts

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

// null, or the words without which more names match.
Json prefix_json(const KeyMatch& match) {
  if (match.matched_without_prefix == 0) return nullptr;
  return {{"model", match.skeleton_prefix},
          {"file", match.file_prefix},
          {"matched_without", match.matched_without_prefix}};
}

void print_prefix(const KeyMatch& match, Printout& out) {
  if (match.matched_without_prefix == 0) return;
  const auto side = [](const char* whose, const std::string& prefix) {
    return prefix.empty() ? "" : std::string(whose) + " names begin with '" + prefix + "'";
  };
  const std::string model = side("the model's", match.skeleton_prefix),
                    file = side("the file's", match.file_prefix);
  out.item("", kLabel,
           model + (model.empty() || file.empty() ? "" : " and ") + file + ": without it " +
               std::to_string(match.matched_without_prefix) + " names match");
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
          {"filled", match.filled},
          {"prefix", prefix_json(match)},
          {"peak_bytes", bytes_json(assign, "peak_bytes")},
          {"peak_bound_bytes", bytes_json(assign, "peak_bound_bytes")},
          {"weights", keys_json(match.matched)}};
}

void print_model(const KeyMatch& match, const Verdict& assign, Printout& out) {
  if (match.all_matched())
    out.item("pass", kLabel, "model: all keys matched (" + std::to_string(match.matched.size()) + ")");
  else
    out.item("fail", kLabel,
             "model: " + std::to_string(match.missing.size()) + " missing, " +
                 std::to_string(match.unexpected.size()) + " unexpected, " +
                 std::to_string(match.mismatched.size()) + " of another shape");
  if (const std::string peak = peak_text(assign); !peak.empty())
    out.item("", kLabel, peak + " while every byte was read");
  print_prefix(match, out);
  print_names("missing", match.missing, out);
  print_names("unexpected", match.unexpected, out);
  print_names("filled by load_state_dict, as BatchNorm had none before its version 2:", match.filled, out);
  print_keys("another shape ", match.mismatched, out);
  print_keys("", match.matched, out);
}

}  // namespace qcts::cli
