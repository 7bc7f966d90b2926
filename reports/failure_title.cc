// SPDX-License-Identifier: BSD-3-Clause
#include "reports/failure_title.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace qcts {
namespace {

constexpr size_t kTitleBytes = 200;
constexpr std::string_view kWant = ": want ", kWrongAlone = "wrong without another call: ";

struct CaveatWords {
  Caveat caveat;
  const char* words;
};
constexpr CaveatWords kConduct[] = {
    {Caveat::wrote_nothing, "the output was not written"},
    {Caveat::stopped_writing, "a later call wrote nothing"},
    {Caveat::left_earlier_answer, "the output still held another answer"},
    {Caveat::wrote_part, "a part of the output was not written"},
    {Caveat::wrote_later, "the output changed after the call"},
    {Caveat::same_everywhere, "every element is the same"},
    {Caveat::copied_input, "the answer is x"},
    {Caveat::earlier_answer, "the answer belongs to earlier data"},
    {Caveat::narrow_sum, "sums are kept in too few bits"},
    {Caveat::refused_by_values, "refused for the values of the data"},
};

bool all_have(const Group& group, Caveat caveat) {
  return std::ranges::all_of(group.verdicts, [&](const Verdict* verdict) { return verdict->has(caveat); });
}

// Texts of providers may hold anything, so the caller that shows a title makes it printable.
std::string as_title(std::string text) {
  for (size_t at = 0; (at = text.find('#', at)) != text.npos;)
    text.replace(at, 1, std::isdigit(static_cast<unsigned char>(text.c_str()[at + 1])) ? "No. " : "");
  if (text.size() <= kTitleBytes) return text;
  size_t end = kTitleBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

// "y: row 3, column 0" -> "y"
std::string field_of(std::string_view where) { return std::string(where.substr(0, where.find(": "))); }

std::string wrong_field(const std::string& reason) {
  const size_t want = reason.find(kWant);
  if (want == reason.npos) return "";
  const std::string where = reason.substr(0, want);
  return where.find(": ") == where.npos && where.find(' ') != where.npos ? "" : field_of(where);
}

// "row 3 of 17" -> "row ... of ...", for verdicts that differ in their numbers.
std::string with_open_numbers(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    const bool in_word =
        i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 || text[i - 1] == '_');
    if (!is_digit || in_word) {
      out += text[i];
      continue;
    }
    while (i + 1 < text.size() && (std::isalnum(static_cast<unsigned char>(text[i + 1])) != 0 ||
                                   (text[i + 1] == '.' && i + 2 < text.size() &&
                                    std::isdigit(static_cast<unsigned char>(text[i + 2])) != 0)))
      ++i;
    out += "...";
  }
  return out;
}

std::string percent(double part) {
  if (part > 0 && part < 0.01) return "under 1 %";
  return std::to_string(std::lround(100 * part)) + " %";
}

// How many elements differ: "every element", "2 % to 78 % of the elements".
std::string share_of(const Group& group) {
  double least = 1, most = 0;
  bool one_each = true;
  for (const Verdict* verdict : group.verdicts) {
    if (!verdict->mismatch || verdict->mismatch->total == 0) return "";
    const Mismatch& mismatch = *verdict->mismatch;
    const double part = static_cast<double>(mismatch.count) / static_cast<double>(mismatch.total);
    least = std::min(least, part);
    most = std::max(most, part);
    one_each = one_each && mismatch.count == 1;
  }
  if (least == 1) return "every element";
  if (one_each) return "one element";
  const std::string low = percent(least), high = percent(most);
  return (low == high ? high : low + " to " + high) + " of the elements";
}

// The region that all reasons name, as ", all in the last row".
std::string shared_region(const Group& group) {
  const std::string region = region_of(group.verdicts.front()->reason);
  if (region.empty()) return "";
  const bool shared = std::ranges::all_of(
      group.verdicts, [&](const Verdict* verdict) { return region_of(verdict->reason) == region; });
  return shared ? ", all in " + region : "";
}

std::string shared_conduct(const Group& group) {
  for (const auto& [caveat, words] : kConduct)
    if (all_have(group, caveat)) return std::string(": ") + words;
  return "";
}

std::string reason_words(const Group& group) {
  const std::string first = without_log(group.verdicts.front()->reason);
  const bool same = std::ranges::all_of(
      group.verdicts, [&](const Verdict* verdict) { return without_log(verdict->reason) == first; });
  return same ? first : with_open_numbers(first);
}

}  // namespace

std::string hypothesis_of(const std::string& reason) {
  constexpr std::string_view kKey = "hypothesis: ";
  const size_t at = reason.find(kKey);
  if (at == reason.npos) return {};
  const size_t begin = at + kKey.size();
  return reason.substr(begin, reason.find(" (predicts", begin) - begin);
}

std::string agreement_of(const std::string& reason) {
  constexpr std::string_view kKey = "they agree with: ";
  const size_t at = reason.find(kKey);
  if (at == reason.npos) return {};
  const size_t begin = at + kKey.size();
  return reason.substr(begin, reason.find(';', begin) - begin);
}

// suites/base/process.h and suites/run/workers/provider_slot.h write these parts.
std::string without_log(const std::string& reason) {
  constexpr std::string_view kWords = "; it last wrote: ", kLine = " | ", kLog = "; its log: ";
  std::string text = reason.substr(0, reason.find(kLog));
  const size_t words = text.find(kWords);
  const size_t line = words == text.npos ? text.npos : text.rfind(kLine);
  if (line != text.npos && line > words)
    text.erase(words + kWords.size(), line + kLine.size() - words - kWords.size());
  return text;
}

std::string region_of(const std::string& reason) {
  constexpr std::string_view kKey = " all in ";
  const size_t at = reason.find(kKey);
  if (at == reason.npos) return {};
  const size_t begin = at + kKey.size();
  return reason.substr(begin, reason.find_first_of(",;", begin) - begin);
}

std::string check_of(const std::string& reason) {
  constexpr std::string_view kClaims = "claims to be ", kTimed = "not timed: wrong answer";
  if (reason.starts_with(kClaims)) {
    const size_t end = reason.find(", but");
    if (end != reason.npos)
      return "not " + reason.substr(kClaims.size(), end - kClaims.size()) + ", as it claims";
  }
  if (reason.starts_with(kTimed)) return std::string(kTimed);
  if (reason.starts_with(kWrongAlone)) return {};
  for (const std::string_view begin :
       {"wrong ", "answers contradict each other", "with all but two elements"})
    if (reason.starts_with(begin) && reason.find(": ") != reason.npos)
      return reason.substr(0, reason.find(": "));
  return {};
}

std::string failure_title(const Group& group) {
  const Verdict& first = *group.verdicts.front();
  if (!group.hypothesis.empty()) return as_title(group.hypothesis + shared_region(group));
  if (const std::string check = check_of(first.reason); !check.empty())
    return as_title(check + shared_conduct(group));
  if (!first.mismatch || first.mismatch->where.empty()) return as_title(reason_words(group));
  const std::string share = share_of(group);
  return as_title("wrong " + field_of(first.mismatch->where) + (share.empty() ? "" : ", " + share) +
                  shared_region(group) + shared_conduct(group));
}

std::string failure_title(const std::string& reason) {
  const std::string region = region_of(reason), where = region.empty() ? "" : ", all in " + region;
  if (const std::string hypothesis = hypothesis_of(reason); !hypothesis.empty())
    return as_title(hypothesis + where);
  if (const std::string check = check_of(reason); !check.empty()) return as_title(check);
  const bool is_alone = reason.starts_with(kWrongAlone);
  const std::string field = wrong_field(is_alone ? reason.substr(kWrongAlone.size()) : reason);
  return as_title(field.empty() ? without_log(reason) : "wrong " + field + where);
}

std::string diagnosis_of(const Verdict& verdict) {
  std::string reason = verdict.reason;
  if (verdict.mismatch) {
    const Mismatch& m = *verdict.mismatch;
    for (const std::string& told : {m.where + ": want " + m.want + ", got " + m.got,
                                    std::to_string(m.count) + " of " + std::to_string(m.total) + " elements"})
      if (const size_t at = reason.find(told); at != reason.npos) reason.erase(at, told.size());
  }
  const size_t first = reason.find_first_not_of(" ;:"), last = reason.find_last_not_of(" ;:");
  return first == reason.npos ? "" : reason.substr(first, last + 1 - first);
}

std::string failure_details(const Group& group) {
  const std::string diagnosis = diagnosis_of(*group.verdicts.front());
  return as_title(diagnosis) == failure_title(group) ? "" : diagnosis;
}

}  // namespace qcts
