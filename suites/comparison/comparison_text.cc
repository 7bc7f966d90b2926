// SPDX-License-Identifier: BSD-3-Clause
// A comparison as text and as Markdown. Texts of verdicts may hold anything: they are made printable, and in
// Markdown they stand in code spans.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <span>
#include <sstream>

#include "reports/failure_title.h"
#include "suites/base/printable.h"
#include "suites/comparison/comparison_lists.h"
#include "suites/comparison/markdown.h"

namespace qcts {
namespace {

constexpr size_t kReasonLength = 160;
constexpr size_t kIdsOfACause = 3;

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

std::string statuses_text(const std::optional<Status>& before, const std::optional<Status>& after) {
  return status_word(before) + " -> " + status_word(after);
}

// Returns a group's title, and the reason of its first case if that says more.
std::string cause_text(const ChangeGroup& group) {
  const std::string title = printable(group.title), reason = shortened(group.reason);
  return title.empty() || reason.starts_with(title) ? reason : title + ": " + reason;
}

// The ids of a group that text and Markdown name; `all` names every one.
std::span<const std::string> first_ids(const ChangeGroup& group, bool all) {
  return first_of(group.ids, all ? 0 : kIdsOfACause);
}

void print_cause(Printout& out, const ChangeGroup& group, bool all) {
  const std::string turn = statuses_text(group.before, group.after), cause = cause_text(group);
  if (group.ids.size() == 1) {
    out.text(group.ids[0] + ": " + turn, 2);
    if (!cause.empty()) out.text(cause, 6);
    return;
  }
  out.text(std::to_string(group.ids.size()) + " " + turn + (cause.empty() ? "" : ": " + cause), 2);
  const std::span<const std::string> named = first_ids(group, all);
  for (const std::string& id : named) out.text(id, 6);
  if (named.size() < group.ids.size())
    out.text("... and " + std::to_string(group.ids.size() - named.size()) + " more (--all)", 6);
}

std::string cause_row(const ChangeGroup& group, bool all) {
  std::string ids;
  for (const std::string& id : first_ids(group, all)) ids += (ids.empty() ? "" : " ") + code_span(id);
  return std::to_string(group.ids.size()) + " | " + status_word(group.before) + " | " +
         status_word(group.after) + " | " + code_span(cause_text(group)) + " | " + ids;
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

std::string latency_line(const RunComparison& comparison) {
  const PaceComparison& latency = comparison.latency;
  if (comparison.latency_left_out) return "latency: left out";
  if (latency.compared == 0) return "latency: no case that both runs timed";
  return formatted(
      "latency: %zu cases compared; between the runs %.1f %% of noise beyond their own intervals; half of "
      "the cases "
      "would have to be %.0f %% slower to be reported",
      latency.compared, 100 * latency.spread, 100 * latency.resolution);
}

std::string counted(const char* title, size_t count) {
  return std::string(title) + " (" + std::to_string(count) + ")";
}

// "newly failing (44, of 3 causes)"
std::string list_title(const NamedList& named, size_t cases, size_t causes) {
  return std::string(named.title) + " (" + std::to_string(cases) +
         (causes > 1 ? ", of " + std::to_string(causes) + " causes)" : ")");
}

// Prints at most `lines` entries of a list; `entry` prints one.
template <typename List, typename Entry>
void add_list_text(Printout& out, const std::string& title, const List& list, size_t lines, Entry entry) {
  if (list.empty()) return;
  out.text(title, 0, Ink::bold);
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
  out << "\n### " << title << "\n\n| " << columns << " |\n|---";
  for (const char c : columns)
    if (c == '|') out << "|---";
  out << "|\n";
  const size_t shown = lines == 0 ? list.size() : std::min(list.size(), lines);
  for (size_t i = 0; i < shown; ++i) out << "| " << row(list[i]) << " |\n";
  if (shown < list.size()) out << "\n... and " << list.size() - shown << " more\n";
}

}  // namespace

std::string comparison_line(const RunComparison& comparison) {
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

std::string StatusChange::title() const {
  if (reason.empty() || after == Status::pass) return "";
  return failure_title(reason);
}

std::string comparison_text(const RunComparison& comparison, size_t lines, const Screen& screen) {
  Printout out(screen);
  out.text("before  " + head_text(comparison.before));
  out.text("now     " + head_text(comparison.after));
  out.blank();
  for (const NamedList& named : kLists) {
    const std::vector<StatusChange>& changes = comparison.*named.list;
    const std::vector<ChangeGroup> causes = by_cause(changes);
    add_list_text(out, list_title(named, changes.size(), causes.size()), causes, lines,
                  [&](const ChangeGroup& group) { print_cause(out, group, lines == 0); });
  }
  for (const PaceList& named : kPaceLists)
    add_list_text(out, counted(named.title, (comparison.latency.*named.list).size()),
                  comparison.latency.*named.list, lines, [&](const PaceChange& change) {
                    out.text(ratio_text(change.ratio) + " " +
                                 formatted("%.4g us -> %.4g us", change.before_us, change.after_us) + " " +
                                 change.id,
                             2);
                    if (!change.doubt.empty()) out.text(change.doubt, 6);
                  });
  add_list_text(out, counted("size changed", comparison.sizes.size()), comparison.sizes, lines,
                [&](const BytesChange& size) {
                  out.text(size.id + ": " + size.measure + " " + std::to_string(size.before) + " -> " +
                               std::to_string(size.after),
                           2);
                });
  add_list_text(out, counted("environment changed", comparison.environment.size()), comparison.environment, 0,
                [&](const FieldChange& change) {
                  out.text(change.field + ": " + shortened(change.before) + " -> " + shortened(change.after),
                           2);
                });
  if (comparison.not_comparable.empty()) out.text(latency_line(comparison));
  if (const std::string better = counted_lists(comparison, false, false); !better.empty())
    out.text("also: " + better);
  out.text(comparison_line(comparison), 0, Ink::bold);
  return out.str();
}

std::string comparison_markdown(const RunComparison& comparison, size_t lines) {
  std::ostringstream out;
  out << "**" << markdown_text(comparison_line(comparison)) << "**\n\n"
      << "| | run | plan | started | commit | cases | machine class |\n|---|---|---|---|---|---|---|\n";
  for (const auto& [word, head] :
       {std::pair("before", &comparison.before), std::pair("now", &comparison.after)})
    out << "| " << word << " | " << code_span(head->name) << " | " << code_span(head->plan) << " | "
        << code_span(head->started) << " | " << code_span(head->commit) << " | " << head->cases << " | "
        << head->machine_class << " |\n";
  for (const NamedList& named : kLists) {
    const std::vector<StatusChange>& changes = comparison.*named.list;
    const std::vector<ChangeGroup> causes = by_cause(changes);
    add_table(out, list_title(named, changes.size(), causes.size()), "cases | before | now | cause | first",
              causes, lines, [&](const ChangeGroup& group) { return cause_row(group, lines == 0); });
  }
  for (const PaceList& named : kPaceLists)
    add_table(out, counted(named.title, (comparison.latency.*named.list).size()),
              "case | time now / before | before | now", comparison.latency.*named.list, lines,
              [](const PaceChange& change) {
                return code_span(change.id) + " | " + ratio_text(change.ratio) + " | " +
                       formatted("%.4g us | %.4g us", change.before_us, change.after_us);
              });
  add_table(out, counted("size changed", comparison.sizes.size()), "case | measure | before | now",
            comparison.sizes, lines, [](const BytesChange& size) {
              return code_span(size.id) + " | " + code_span(size.measure) + " | " +
                     std::to_string(size.before) + " | " + std::to_string(size.after);
            });
  add_table(out, counted("environment changed", comparison.environment.size()), "field | before | now",
            comparison.environment, 0, [](const FieldChange& change) {
              return code_span(change.field) + " | " + code_span(shortened(change.before)) + " | " +
                     code_span(shortened(change.after));
            });
  if (comparison.not_comparable.empty()) out << "\n" << latency_line(comparison) << "\n";
  return out.str();
}

}  // namespace qcts
