// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/recounted_report.h"

#include <algorithm>
#include <optional>

#include "reports/cells.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/run/environment/environment.h"
#include "suites/run/run_report.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Departure {
  std::string field;
  Json told, counted;  // null: absent
};

std::optional<Departure> first_departure(const Json& told, const Json& counted, const std::string& field) {
  if (told.is_object() && counted.is_object()) {
    const std::string before = field.empty() ? "" : field + ".";
    for (const auto& [name, value] : counted.items())
      if (auto found = first_departure(told.value(name, Json()), value, before + name)) return found;
    for (const auto& [name, value] : told.items())
      if (!counted.contains(name)) return Departure{before + name, value, nullptr};
    return std::nullopt;
  }
  if (told.is_array() && counted.is_array()) {
    for (size_t i = 0; i < std::max(told.size(), counted.size()); ++i)
      if (auto found =
              first_departure(i < told.size() ? told[i] : Json(), i < counted.size() ? counted[i] : Json(),
                              field + "[" + std::to_string(i) + "]"))
        return found;
    return std::nullopt;
  }
  if (told == counted) return std::nullopt;
  return Departure{field, told, counted};
}

std::string shown(const Json& json) {
  return clipped_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

RunRecord whole_record(const fs::path& file) {
  if (!fs::exists(file))
    throw UsageError("there is no " + file.string() + " and no run.jsonl.gz to recompute report.json from");
  RunRecord record = read_run_record(file);
  if (record.truncated || record.verdicts.size() != record.head.cases)
    throw UsageError(file.string() + " is unfinished: " + std::to_string(record.verdicts.size()) + " of " +
                     std::to_string(record.head.cases) + " cases");
  return record;
}

}  // namespace

std::string other_lists(const RunHead& head, const std::vector<fs::path>& folders) {
  RunHead here = head;
  here.suite_version = suite_version();
  here.fixtures_sha256 = fixtures_sha256(folders);
  here.mustpass_sha256 =
      mustpass_sha256(load_mustpass(repository_root() / "suites" / "mustpass" / "default.txt"));
  return difference(head, here);
}

std::vector<Verdict> recounted_verdicts(const fs::path& folder, const Json& report) {
  RunRecord record = whole_record(record_of(folder));
  std::vector<fs::path> fixtures = {fixtures_folder()};
  fixtures.insert(fixtures.end(), record.head.fixtures.begin(), record.head.fixtures.end());
  if (const std::string other = other_lists(record.head, fixtures); !other.empty())
    throw UsageError("this version of qcts cannot recompute " + (folder / "report.json").string() + ": " +
                     other);
  RunReport counted = report_from(record.head, load_fixtures(fixtures, Files::known));
  counted.verdicts = std::move(record.verdicts);
  for (Verdict& verdict : counted.verdicts) apply_waivers(counted.waivers, verdict);
  count(counted);
  Json again = Json::parse(report_text(counted_json(counted)));
  again["changes"] = report.at("changes");
  for (const char* untold : {"wall_s", "left_out"}) again["run"][untold] = report.at("run").at(untold);
  if (const auto found = first_departure(report, again, ""))
    throw Failure("refused: " + (folder / "report.json").string() + ": " + found->field + " is " +
                  shown(found->told) + ", and the record gives " + shown(found->counted));
  return std::move(counted.verdicts);
}

}  // namespace qcts
