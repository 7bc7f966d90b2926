// SPDX-License-Identifier: BSD-3-Clause
// Case ids: "kind.op/scheme/input", without the provider under test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qcts {

// `values` is the kind of a verdict of `qcts check`. No case of a plan has it.
enum class Kind : uint8_t { round_trip, assign, reject, size, numerics, determinism, latency, values };
inline constexpr int kKindCount = static_cast<int>(Kind::values) + 1;
inline constexpr int kPlanKindCount = static_cast<int>(Kind::latency) + 1;  // kinds of cases, listed first
std::string_view kind_name(Kind kind);
std::optional<Kind> kind_from_name(std::string_view name);

// The operation under test. `file` is for kinds that judge checkpoints.
enum class Op : uint8_t { file, quantize, quantize_activation, dequantize, pack, unpack, linear };
inline constexpr int kOpCount = static_cast<int>(Op::linear) + 1;
std::string_view op_name(Op op);
std::optional<Op> find_op(std::string_view name);

struct CaseId {
  Kind kind = Kind::numerics;
  Op op = Op::file;
  std::string scheme;  // name of a scheme; "mixed", "plain" or "any" for files without a single scheme
  std::string input;   // [a-z0-9_/.]

  std::string text() const;
  bool operator==(const CaseId&) const = default;
};

// Returns nullopt if `text` does not name a kind, an op, a scheme and an input.
std::optional<CaseId> parse_case_id(std::string_view text);

// Returns true if the problem is drawn from the run's seed, so that another seed asks another question.
bool is_drawn(const CaseId& id);

}  // namespace qcts
