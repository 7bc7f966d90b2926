// SPDX-License-Identifier: BSD-3-Clause
// A case: one check with one verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fixtures/golden.h"
#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"
#include "suites/cases/question.h"
#include "suites/inputs/input_kind.h"

namespace qcts {

// The variant name of providers that run saved programs. They have no kernel variant.
inline constexpr const char* kProgramVariant = "program";
// The provider name in a program's round-trip case if no plug-in runs programs.
// The name shows that the file was not declined by the suite's own readers.
inline constexpr const char* kAbsentRunner = "absent";
// Returns true if the golden contains a program: it has recorded runs or the flag "torchscript".
bool is_program(const Golden& golden);

// The smallest m that counts as prefill, which is bound by arithmetic. Scalar kernels are not timed on it.
inline constexpr int64_t kPrefillRows = 32;

struct Case {
  CaseId id;  // alphabet [a-z0-9_/.]
  // nullptr for files that mix schemes or hold none, which the id names "mixed", "plain" or "any".
  const Scheme* scheme = nullptr;
  Question question;
  bool for_emulated = true;                        // false: skip emulated variants (Plan::emulated_once)
  const Implementation* implementation = nullptr;  // the kernel to judge; nullptr for cases that judge files
  // The widest kind of inputs on which a wrong answer of the implementation fails. On wider ones it is
  // Status::robustness.
  InputKind promised = InputKind::hostile;
  // The provider that loads, runs and saves a TorchScript golden, for its round_trip case.
  // With nullptr, no such provider is loaded, and the verdict is not_supported.
  const Implementation* runner = nullptr;

  const Golden* golden() const { return golden_of(question); }
  const Synthetic* synthetic() const { return synthetic_of(question); }
  Layout layout() const { return layout_of(question); }
  Policy activation() const { return activation_of(question); }
  bool is_warm() const;  // one copy of the operands, in the caches, is timed
  bool is_block() const { return std::holds_alternative<BlockQuestion>(question); }
  bool judges_file() const { return implementation == nullptr && runner == nullptr; }
  std::string provider()
      const;  // "qcts" for cases that judge files, or kAbsentRunner if no provider runs programs
  std::string variant() const;  // "" for cases that judge files, kProgramVariant for a program runner
  std::string full_id() const;  // the id, followed by "/provider_variant" if there is a provider
};

// Share of the latency budget for a prefill call, relative to a decode call.
// The share is larger because prefill calls are fewer and longer.
inline constexpr double kPrefillBudgetShare = 4;
// A block has seven layers, and is timed four times per round.
inline constexpr double kBlockBudgetShare = 6;
double budget_share(const Case& c);  // relative share of a latency case

}  // namespace qcts
