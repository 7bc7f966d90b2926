// SPDX-License-Identifier: BSD-3-Clause
// The three forms of a comparison. Texts of verdicts may hold anything: they are made printable, and in
// Markdown they stand in code spans.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <sstream>

#include "reports/failure_title.h"
#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/history/comparison.h"
#include "suites/history/markdown.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kReasonLength = 160;

// A list of cases whose status changed, in all three forms.
struct NamedList {
  const char *key, *title;
  std::vector<StatusChange> RunComparison::*list;
  bool is_worse;
};
constexpr NamedList kLists[] = {
    {"newly_failing", "newly failing", &RunComparison::newly_failing, true},
    {"gone", "gone", &RunComparison::gone, true},
    {"newly_not_supported", "newly not supported", &RunComparison::newly_not_supported, true},
    {"newly_inconclusive", "newly inconclusive", &RunComparison::newly_inconclusive, true},
    {"newly_robustness", "newly wrong on hostile inputs, which gates nothing",
     &RunComparison::newly_robustness, true},
    {"fixed", "fixed", &RunComparison::fixed, false},
    {"newly_supported", "newly supported", &RunComparison::newly_supported, false},
    {"new", "new", &RunComparison::added, false},
};
struct PaceList {
  const char *key, *title;
  std::vector<PaceChange> PaceComparison::*list;
  bool is_worse;
};
constexpr PaceList kPaceLists[] = {
    {"slower", "slower", &PaceComparison::slower, true},
    {"faster", "faster", &PaceComparison::faster, false},
    {"undecided", "slower or faster, but not to be trusted", &PaceComparison::undecided, true},
};

std::string formatted(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string formatted(const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

std::string status_word(const std::optional<Status>& status) {
  return status ? std::string(status_name(*status)) : "absent";
}

std::string shortened(const std::string& reason) {
  std::string text = printable(reason);
  if (text.size() <= kReasonLength) return text;
  size_t end = kReasonLength;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

// The titles of a list and how many cases have them, the most frequent first. Empty if all are alike.
std::vector<std::pair<size_t, std::string>> titles_of(const std::vector<StatusChange>& changes) {
  std::map<std::string, size_t> counts;
  for (const StatusChange& change : changes)
    if (const std::string title = change.title(); !title.empty()) ++counts[printable(title)];
  std::vector<std::pair<size_t, std::string>> titles;
  if (counts.size() < 2) return titles;
  for (const auto& [title, count] : counts) titles.emplace_back(count, title);
  std::ranges::stable_sort(titles, std::ranges::greater{}, &std::pair<size_t, std::string>::first);
  return titles;
}

// Returns a change's title, and its reason if that says more.
std::string change_text(const StatusChange& change) {
  const std::string title = printable(change.title()), reason = shortened(change.reason);
  return title.empty() || reason.starts_with(title) ? reason : title + ": " + reason;
}

std::string ratio_text(const Interval& ratio) {
  return formatted("%.3fx [%.3f, %.3f]", ratio.value, ratio.low, ratio.high);
}

std::string head_text(const ComparedHead& head) {
  return printable(head.name) + ": " + printable(head.plan) + ", " + printable(head.started) + ", commit " +
         printable(head.commit) + ", " + std::to_string(head.cases) + " cases, " + head.machine_class;
}

std::string counted_lists(const RunComparison& comparison, bool worse, bool with_empty) {
  std::string text;
  const auto add = [&](size_t count, const char* title) {
    if (count > 0 || with_empty) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + title;
  };
  for (const NamedList& named : kLists)
    if (named.is_worse == worse) add((comparison.*named.list).size(), named.title);
  for (const PaceList& named : kPaceLists)
    if (named.is_worse == worse) add((comparison.latency.*named.list).size(), named.title);
  return text;
}

std::string verdict_line(const RunComparison& comparison) {
  switch (outcome_of(comparison)) {
    case Outcome::nothing_proved:
      return "NOT COMPARABLE: " + printable(comparison.not_comparable);
    case Outcome::failed:
      return "WORSE: " + counted_lists(comparison, true, false);
    case Outcome::inconclusive:
      return "INCONCLUSIVE: " + counted_lists(comparison, true, false);
    default:
      return "NOTHING WORSE: " + std::to_string(comparison.unchanged) + " cases unchanged, " +
             std::to_string(comparison.still_failing) + " still failing" +
             (comparison.drawn_anew == 0
                  ? ""
                  : ", " + std::to_string(comparison.drawn_anew) + " new tonight (another seed)");
  }
}

std::string latency_line(const RunComparison& comparison) {
  const PaceComparison& latency = comparison.latency;
  if (comparison.latency_left_out) return "latency: left out";
  if (latency.compared == 0) return "latency: no case that both runs timed";
  return formatted(
      "latency: %zu cases compared; between the runs %.1f %% of noise beyond their own intervals; half of "
      "the cases "
      "would have to be %.0f %% slower to be named",
      latency.compared, 100 * latency.spread, 100 * latency.resolution);
}

// Prints at most `lines` entries of a list; `entry` prints one.
template <typename List, typename Entry>
void add_list_text(Printout& out, const std::string& title, const List& list, size_t lines, Entry entry) {
  if (list.empty()) return;
  out.text(title + " (" + std::to_string(list.size()) + ")", 0, Ink::bold);
  for (size_t i = 0; i < list.size(); ++i) {
    if (lines != 0 && i == lines)
      return out.text("... and " + std::to_string(list.size() - lines) + " more (--all)", 2);
    entry(list[i]);
  }
}

// A Markdown table of at most `lines` rows. `columns`: their names, as "a | b"; `row` makes one row in the
// same form.
template <typename List, typename Row>
void add_table(std::ostringstream& out, const std::string& title, const std::string& columns,
               const List& list, size_t lines, Row row) {
  if (list.empty()) return;
  out << "\n### " << title << " (" << list.size() << ")\n\n| " << columns << " |\n|---";
  for (const char c : columns)
    if (c == '|') out << "|---";
  out << "|\n";
  const size_t shown = lines == 0 ? list.size() : std::min(list.size(), lines);
  for (size_t i = 0; i < shown; ++i) out << "| " << row(list[i]) << " |\n";
  if (shown < list.size()) out << "\n... and " << list.size() - shown << " more\n";
}

Json interval_json(const Interval& interval) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"value", number(interval.value)}, {"low", number(interval.low)}, {"high", number(interval.high)}};
}

Json head_json(const ComparedHead& head) {
  return {{"name", head.name},
          {"started", head.started},
          {"commit", head.commit},
          {"plan", head.plan},
          {"machine_class", head.machine_class},
          {"cases", head.cases}};
}

Json latency_json(const RunComparison& comparison) {
  const PaceComparison& latency = comparison.latency;
  Json json = {{"left_out", comparison.latency_left_out},
               {"compared", latency.compared},
               {"spread", latency.spread},
               {"resolution", std::isfinite(latency.resolution) ? Json(latency.resolution) : Json(nullptr)}};
  for (const PaceList& named : kPaceLists) {
    json[named.key] = Json::array();
    for (const PaceChange& change : latency.*named.list)
      json[named.key].push_back({{"id", change.id},
                                 {"ratio", interval_json(change.ratio)},
                                 {"before_us", change.before_us},
                                 {"after_us", change.after_us},
                                 {"nights", change.nights},
                                 {"doubt", change.doubt}});
  }
  return json;
}

}  // namespace

std::string StatusChange::title() const {
  if (reason.empty() || after == Status::pass) return "";
  return failure_title(reason);
}

Json comparison_json(const RunComparison& comparison) {
  Json json = {
      {"before", head_json(comparison.before)},
      {"after", head_json(comparison.after)},
      {"exit_code", static_cast<int>(outcome_of(comparison))},
      {"summary", verdict_line(comparison)},
      {"not_comparable", comparison.not_comparable.empty() ? Json(nullptr) : Json(comparison.not_comparable)},
      {"unchanged", comparison.unchanged},
      {"drawn_anew", comparison.drawn_anew},
      {"still_failing", comparison.still_failing}};
  for (const NamedList& named : kLists) {
    json[named.key] = Json::array();
    for (const StatusChange& change : comparison.*named.list)
      json[named.key].push_back(
          {{"id", change.id},
           {"before", change.before ? Json(status_name(*change.before)) : Json(nullptr)},
           {"after", change.after ? Json(status_name(*change.after)) : Json(nullptr)},
           {"title", change.title()},
           {"reason", change.reason}});
  }
  json["latency"] = latency_json(comparison);
  json["sizes"] = Json::array();
  for (const BytesChange& size : comparison.sizes)
    json["sizes"].push_back(
        {{"id", size.id}, {"measure", size.measure}, {"before", size.before}, {"after", size.after}});
  json["environment"] = Json::array();
  for (const FieldChange& change : comparison.environment)
    json["environment"].push_back(
        {{"field", change.field}, {"before", change.before}, {"after", change.after}});
  return json_document("comparison", json, kComparisonSchema);
}

std::string comparison_text(const RunComparison& comparison, size_t lines, const Screen& screen) {
  Printout out(screen);
  out.text("before  " + head_text(comparison.before));
  out.text("now     " + head_text(comparison.after));
  out.blank();
  for (const NamedList& named : kLists) {
    add_list_text(out, named.title, comparison.*named.list, lines, [&](const StatusChange& change) {
      out.text(change.id + ": " + status_word(change.before) + " -> " + status_word(change.after), 2);
      if (!change.reason.empty()) out.text(change_text(change), 6);
    });
    if (named.is_worse)
      for (const auto& [count, title] : titles_of(comparison.*named.list))
        out.text(std::to_string(count) + ": " + title, 2);
  }
  for (const PaceList& named : kPaceLists)
    add_list_text(out, named.title, comparison.latency.*named.list, lines, [&](const PaceChange& change) {
      out.text(ratio_text(change.ratio) + " " +
                   formatted("%.4g us -> %.4g us", change.before_us, change.after_us) + " " + change.id,
               2);
      if (!change.doubt.empty()) out.text(change.doubt, 6);
    });
  add_list_text(out, "size changed", comparison.sizes, lines, [&](const BytesChange& size) {
    out.text(size.id + ": " + size.measure + " " + std::to_string(size.before) + " -> " +
                 std::to_string(size.after),
             2);
  });
  add_list_text(out, "environment changed", comparison.environment, 0, [&](const FieldChange& change) {
    out.text(change.field + ": " + shortened(change.before) + " -> " + shortened(change.after), 2);
  });
  if (comparison.not_comparable.empty()) out.text(latency_line(comparison));
  if (const std::string better = counted_lists(comparison, false, false); !better.empty())
    out.text("also: " + better);
  out.text(verdict_line(comparison), 0, Ink::bold);
  return out.str();
}

std::string comparison_markdown(const RunComparison& comparison, size_t lines) {
  std::ostringstream out;
  out << "**" << markdown_text(verdict_line(comparison)) << "**\n\n"
      << "| | run | plan | started | commit | cases | machine class |\n|---|---|---|---|---|---|---|\n";
  for (const auto& [word, head] :
       {std::pair("before", &comparison.before), std::pair("now", &comparison.after)})
    out << "| " << word << " | " << code_span(head->name) << " | " << code_span(head->plan) << " | "
        << code_span(head->started) << " | " << code_span(head->commit) << " | " << head->cases << " | "
        << head->machine_class << " |\n";
  for (const NamedList& named : kLists)
    add_table(out, named.title, "case | before | now | reason", comparison.*named.list, lines,
              [](const StatusChange& change) {
                return code_span(change.id) + " | " + status_word(change.before) + " | " +
                       status_word(change.after) + " | " + code_span(change_text(change));
              });
  for (const PaceList& named : kPaceLists)
    add_table(out, named.title, "case | time now / before | before | now", comparison.latency.*named.list,
              lines, [](const PaceChange& change) {
                return code_span(change.id) + " | " + ratio_text(change.ratio) + " | " +
                       formatted("%.4g us | %.4g us", change.before_us, change.after_us);
              });
  add_table(out, "size changed", "case | measure | before | now", comparison.sizes, lines,
            [](const BytesChange& size) {
              return code_span(size.id) + " | " + code_span(size.measure) + " | " +
                     std::to_string(size.before) + " | " + std::to_string(size.after);
            });
  add_table(out, "environment changed", "field | before | now", comparison.environment, 0,
            [](const FieldChange& change) {
              return code_span(change.field) + " | " + code_span(shortened(change.before)) + " | " +
                     code_span(shortened(change.after));
            });
  if (comparison.not_comparable.empty()) out << "\n" << latency_line(comparison) << "\n";
  return out.str();
}

}  // namespace qcts
