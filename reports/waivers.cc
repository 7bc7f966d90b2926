// SPDX-License-Identifier: BSD-3-Clause
#include "reports/waivers.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::chrono::sys_days day_of(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  char rest = 0;
  const bool shaped =
      text.size() == 10 && std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &year, &month, &day, &rest) == 3;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!shaped || !date.ok()) throw std::runtime_error("'" + text + "' is not a date (YYYY-MM-DD)");
  return date;
}

Waiver waiver_from(const Json& json, const std::string& today, const std::string& where) {
  Waiver waiver;
  const std::pair<const char*, std::string*> fields[] = {{"case", &waiver.case_glob},
                                                         {"provider", &waiver.provider},
                                                         {"issue", &waiver.issue},
                                                         {"added", &waiver.added},
                                                         {"expires", &waiver.expires}};
  if (!json.is_object()) throw std::runtime_error(where + ": is not an object");
  for (const auto& [key, target] : fields) {
    if (!json.contains(key) || !json[key].is_string() || json[key].get<std::string>().empty())
      throw std::runtime_error(where + ": field '" + key + "' is missing or not a string");
    *target = json[key].get<std::string>();
  }
  if (json.size() != std::size(fields)) throw std::runtime_error(where + ": has an unknown field");
  try {
    waiver.age_days = days_between(waiver.added, today);
    waiver.days_left = days_between(today, waiver.expires);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(where + ": " + error.what());
  }
  waiver.expired = waiver.days_left < 0;
  return waiver;
}

}  // namespace

std::vector<Waiver> load_waivers(const std::filesystem::path& path, const std::string& today) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  Json json;
  try {
    json = Json::parse(in);
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path.string() + ": not JSON: " + error.what());
  }
  if (!json.is_object() || json.size() != 2 || json.value("schema", 0) != 1 || !json.contains("waivers") ||
      !json["waivers"].is_array())
    throw std::runtime_error(path.string() + ": want {\"schema\": 1, \"waivers\": [...]}");
  std::vector<Waiver> waivers;
  for (size_t i = 0; i < json["waivers"].size(); ++i)
    waivers.push_back(
        waiver_from(json["waivers"][i], today, path.string() + ": waiver " + std::to_string(i)));
  return waivers;
}

void apply_waivers(std::vector<Waiver>& waivers, Verdict& verdict) {
  const Status status = verdict.status;
  const bool bad = status == Status::fail || status == Status::weak_evidence || status == Status::crash ||
                   status == Status::timeout || status == Status::resource;
  if (!bad && status != Status::pass) return;
  for (Waiver& waiver : waivers) {
    if (waiver.provider != verdict.provider || !glob_match(waiver.case_glob, verdict.case_id.text()))
      continue;
    if (waiver.expired) {
      if (bad) verdict.reason += " (the waiver " + waiver.issue + " expired on " + waiver.expires + ")";
      continue;
    }
    waiver.matched.push_back(verdict.full_id());
    if (bad) {
      verdict.reason = std::string(status_name(status)) + ": " + verdict.reason + " (waived until " +
                       waiver.expires + ": " + waiver.issue + ")";
      verdict.status = Status::waived;
    } else {
      verdict.reason = "passed although waived until " + waiver.expires + ": " + waiver.issue;
      verdict.status = Status::xpass;
    }
    return;
  }
}

std::string today_utc() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day date{now};
  char text[16];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text;
}

int64_t days_between(const std::string& from, const std::string& to) {
  return (day_of(to) - day_of(from)).count();
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = pattern.npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace qcts
