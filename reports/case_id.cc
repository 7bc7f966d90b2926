// SPDX-License-Identifier: BSD-3-Clause
#include "reports/case_id.h"

#include <algorithm>
#include <array>

namespace qcts {
namespace {

constexpr std::array<std::string_view, kKindCount> kKindNames = {
    "round_trip", "assign", "reject", "size", "numerics", "determinism", "latency", "values"};
constexpr std::array<std::string_view, kOpCount> kOpNames = {
    "file", "quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear"};

template <class Enum, size_t kCount>
std::optional<Enum> find_name(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view kind_name(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }
std::optional<Kind> kind_from_name(std::string_view name) { return find_name<Kind>(kKindNames, name); }

std::string_view op_name(Op op) { return kOpNames[static_cast<size_t>(op)]; }
std::optional<Op> find_op(std::string_view name) { return find_name<Op>(kOpNames, name); }

std::string CaseId::text() const {
  return std::string(kind_name(kind)) + "." + std::string(op_name(op)) + "/" + scheme + "/" + input;
}

std::optional<CaseId> parse_case_id(std::string_view text) {
  const size_t dot = text.find('.'), first = text.find('/');
  if (dot == text.npos || first == text.npos || dot > first) return std::nullopt;
  const size_t second = text.find('/', first + 1);
  if (second == text.npos) return std::nullopt;
  const std::optional<Kind> kind = kind_from_name(text.substr(0, dot));
  const std::optional<Op> op = find_op(text.substr(dot + 1, first - dot - 1));
  CaseId id{.scheme = std::string(text.substr(first + 1, second - first - 1)),
            .input = std::string(text.substr(second + 1))};
  if (!kind || !op || id.scheme.empty() || id.input.empty()) return std::nullopt;
  id.kind = *kind;
  id.op = *op;
  return id;
}

bool is_drawn(const CaseId& id) { return id.input.starts_with("drawn_"); }

}  // namespace qcts
