// SPDX-License-Identifier: BSD-3-Clause
#include "reports/cells.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "reports/failure_title.h"
#include "reports/report.h"

namespace qcts {
namespace {

bool has_evidence(const Verdict& verdict, std::string_view what) {
  return std::ranges::find(verdict.evidence, what) != verdict.evidence.end();
}

void count(Cell& cell, const Verdict& verdict) {
  cell.verdicts.push_back(&verdict);
  ++cell.statuses[static_cast<size_t>(verdict.status)];
  cell.wall_us += verdict.wall_us;
  if (verdict.status != Status::pass) return;
  ++(has_evidence(verdict, "emulated")    ? cell.emulated
     : has_evidence(verdict, "golden")    ? cell.confirmed
     : has_evidence(verdict, "reference") ? cell.reference
                                          : cell.other);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_digit(std::string_view text, size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
}

// Returns the end of the number that begins at `at`: 17, 0x3c21, 2.5e-3.
size_t end_of_number(std::string_view text, size_t at) {
  while (at < text.size()) {
    const bool exponent =
        (text[at] == '-' || text[at] == '+') && (text[at - 1] == 'e' || text[at - 1] == 'E');
    if (!is_word(text[at]) && !((text[at] == '.' || exponent) && is_digit(text, at + 1))) break;
    ++at;
  }
  return at;
}

// "row 3: want 0x3c21" -> "row #: want #". Digits within a word stay: int8, e4m3.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool starts = i == 0 || !is_word(text[i - 1]);
    const size_t digit = i + (text[i] == '-' || text[i] == '+');
    if (starts && is_digit(text, digit)) {
      i = end_of_number(text, digit);
      out += '#';
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string cause(const Verdict& verdict, const std::string& hypothesis) {
  if (!hypothesis.empty()) return hypothesis;
  if (const std::string check = check_of(verdict.reason); !check.empty())
    return without_numbers(clipped_text(check));
  if (verdict.mismatch && !verdict.mismatch->where.empty())
    return without_numbers(clipped_text(verdict.mismatch->where)) + " differs";
  return without_numbers(clipped_text(without_log(verdict.reason)));
}

// The product of the numbers after m, n and k in "noise_m17_n40_k96_bf16".
double elements(const std::string& input) {
  double product = 1;
  for (size_t i = 0; i + 1 < input.size(); ++i) {
    const bool starts = i == 0 || input[i - 1] == '_';
    const bool is_dimension = input[i] == 'm' || input[i] == 'n' || input[i] == 'k';
    if (starts && is_dimension && is_digit(input, i + 1))
      product *= std::max(1.0, std::strtod(input.c_str() + i + 1, nullptr));
  }
  return product;
}

// Returns the elements of a case: by its name, or, for a golden's, by what was compared.
double size_of(const Verdict& verdict) {
  const double compared = verdict.mismatch ? static_cast<double>(verdict.mismatch->total) : 0;
  return std::max(elements(verdict.case_id.input), compared);
}

// A provider, and a mistake of it that some verdict names.
using Mistake = std::pair<std::string, std::string>;

std::set<Mistake> named_mistakes(const std::vector<const Verdict*>& verdicts) {
  std::set<Mistake> named;
  for (const Verdict* verdict : verdicts)
    if (const std::string hypothesis = hypothesis_of(verdict->reason); !hypothesis.empty())
      named.emplace(verdict->provider, hypothesis);
  return named;
}

// Returns the hypothesis of a verdict, or the one that others name and with which its few values agree.
std::string mistake_of(const Verdict& verdict, const std::set<Mistake>& named) {
  if (std::string hypothesis = hypothesis_of(verdict.reason); !hypothesis.empty()) return hypothesis;
  std::string agreed = agreement_of(verdict.reason);
  return named.contains({verdict.provider, agreed}) ? agreed : "";
}

auto simplicity(const Verdict& verdict) {
  const bool agrees_only =
      !agreement_of(verdict.reason).empty();  // another one of its group names the mistake
  return std::tuple(verdict.case_id.kind == Kind::determinism, agrees_only, size_of(verdict),
                    verdict.full_id());
}

void sort_simplest_first(std::vector<const Verdict*>& verdicts) {
  std::vector<std::pair<decltype(simplicity(Verdict())), const Verdict*>> keyed;
  for (const Verdict* verdict : verdicts) keyed.emplace_back(simplicity(*verdict), verdict);
  std::sort(keyed.begin(), keyed.end());
  for (size_t i = 0; i < keyed.size(); ++i) verdicts[i] = keyed[i].second;
}

}  // namespace

std::string Cell::implementation() const { return variant.empty() ? provider : provider + "_" + variant; }

std::string Group::name() const { return provider + " " + std::string(status_name(status)) + ": " + what; }

std::string clipped_text(const std::string& text) {
  constexpr size_t kMaxBytes = 2000;
  if (text.size() <= kMaxBytes) return text;
  size_t end = kMaxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

int urgency(Status status) {
  switch (status) {
    case Status::fail:
      return 0;
    case Status::crash:
    case Status::timeout:
    case Status::resource:
      return 1;
    case Status::xpass:
      return 2;
    case Status::internal:
      return 3;
    default:
      return 4;
  }
}

std::vector<Cell> cells_of(const std::vector<Verdict>& verdicts) {
  std::map<std::tuple<Kind, Op, std::string_view, std::string_view, std::string_view>, Cell> cells;
  for (const Verdict& verdict : verdicts) {
    const CaseId& id = verdict.case_id;
    Cell& cell = cells[{id.kind, id.op, id.scheme, verdict.provider, verdict.variant}];
    if (cell.verdicts.empty()) {
      cell.kind = id.kind;
      cell.op = id.op;
      cell.scheme = id.scheme;
      cell.provider = verdict.provider;
      cell.variant = verdict.variant;
    }
    count(cell, verdict);
  }
  std::vector<Cell> list;
  for (auto& [key, cell] : cells) {
    std::ranges::sort(cell.verdicts, {}, [](const Verdict* verdict) { return verdict->case_id.input; });
    list.push_back(std::move(cell));
  }
  return list;
}

std::vector<Group> groups_of(const std::vector<Verdict>& verdicts, bool gate_latency) {
  std::vector<const Verdict*> all;
  for (const Verdict& verdict : verdicts) all.push_back(&verdict);
  return groups_of(all, gate_latency);
}

std::vector<Group> groups_of(const std::vector<const Verdict*>& verdicts, bool gate_latency) {
  std::map<std::tuple<std::string, Status, std::string>, Group> groups;
  const std::set<Mistake> named = named_mistakes(verdicts);
  for (const Verdict* one : verdicts) {
    const Verdict& verdict = *one;
    if (verdict.status == Status::pass) continue;
    const std::string hypothesis = clipped_text(mistake_of(verdict, named)),
                      what = cause(verdict, hypothesis);
    Group& group = groups[{verdict.provider, verdict.status, what}];
    group.provider = verdict.provider;
    group.status = verdict.status;
    group.hypothesis = hypothesis;
    group.what = what;
    group.blocks = group.blocks || blocks_conformance(verdict, gate_latency);
    group.verdicts.push_back(&verdict);
  }
  std::vector<Group> list;
  for (auto& [key, group] : groups) {
    sort_simplest_first(group.verdicts);
    list.push_back(std::move(group));
  }
  std::ranges::stable_sort(list, {}, [](const Group& group) {
    return std::tuple(!group.blocks, urgency(group.status), -static_cast<int64_t>(group.verdicts.size()));
  });
  return list;
}

}  // namespace qcts
