#include "suites/cases/case.h"

#include <algorithm>
#include <array>

namespace qcts {
namespace {

constexpr std::array<std::string_view, kKindCount> kKindNames = {
    "round_trip", "assign", "reject", "size", "numerics", "determinism", "latency"};

}  // namespace

std::string_view kind_name(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<Kind> kind_from_name(std::string_view name) {
  for (size_t i = 0; i < kKindNames.size(); ++i)
    if (kKindNames[i] == name) return static_cast<Kind>(i);
  return std::nullopt;
}

bool is_program(const Golden& golden) {
  return std::find(golden.flags.begin(), golden.flags.end(), "torchscript") != golden.flags.end();
}

std::string Case::provider() const {
  if (runner != nullptr) return runner->name;
  if (kind == Kind::round_trip && golden != nullptr && is_program(*golden)) return kAbsentRunner;
  return implementation == nullptr ? "qcts" : implementation->provider;
}

std::string Case::variant() const {
  if (runner != nullptr) return kProgramVariant;
  return implementation == nullptr ? "" : implementation->kernel->variant;
}

std::string Case::full_id() const { return judges_file() ? id : id + "/" + provider() + "_" + variant(); }

std::optional<CaseIdParts> parse_case_id(std::string_view id) {
  const size_t dot = id.find('.'), first = id.find('/');
  if (dot == id.npos || first == id.npos || dot > first) return std::nullopt;
  const size_t second = id.find('/', first + 1);
  if (second == id.npos) return std::nullopt;
  CaseIdParts parts{std::string(id.substr(0, dot)), std::string(id.substr(dot + 1, first - dot - 1)),
                    std::string(id.substr(first + 1, second - first - 1)),
                    std::string(id.substr(second + 1))};
  if (!kind_from_name(parts.kind) || parts.op.empty() || parts.scheme.empty() || parts.input.empty())
    return std::nullopt;
  return parts;
}

double latency_weight(std::string_view id) {
  constexpr double kPrefillWeight = 4;
  for (size_t at = id.find("_m"); at != id.npos; at = id.find("_m", at + 1)) {
    size_t end = at + 2;
    int64_t m = 0;
    while (end < id.size() && id[end] >= '0' && id[end] <= '9' && m < 1'000'000)
      m = 10 * m + (id[end++] - '0');
    if (end > at + 2 && id.substr(end).starts_with("_n")) return m >= kPrefillRows ? kPrefillWeight : 1;
  }
  return 1;
}

}  // namespace qcts
