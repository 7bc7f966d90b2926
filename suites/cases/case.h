// SPDX-License-Identifier: BSD-3-Clause
// A case: one question with one answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fixtures/golden.h"
#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

// What a provider that runs saved programs is called in the place of a kernel's variant.
inline constexpr const char* kProgramVariant = "program";
// The provider of a program's round trip where no plug-in runs programs: the suite's own readers declined
// nothing.
inline constexpr const char* kAbsentRunner = "absent";
// A golden with a program in it, by its flags.
bool is_program(const Golden& golden);

// Rows of x from which on a linear is called prefill: it is bound by arithmetic, and a scalar one is not
// timed.
inline constexpr int64_t kPrefillRows = 32;

struct Case {
  CaseId id;  // alphabet [a-z0-9_/.]
  // nullptr for files that mix schemes or hold none: "mixed", "plain" or "any" in the id
  const Scheme* scheme = nullptr;
  const Golden* golden = nullptr;        // set for cases that judge a file or use one as evidence
  std::string tensor;                    // the golden's tensor in question, for numerics on a golden
  const Malformed* malformed = nullptr;  // reject
  std::optional<Synthetic> synthetic;
  Layout layout;             // pack and unpack
  Policy activation;         // linear and quantize_activation
  bool for_emulated = true;  // false: emulated variants are not asked (Plan::emulated_once)
  bool warm = false;  // latency: one copy of what is read, in the caches, instead of copies that take turns
  const Implementation* implementation = nullptr;  // the kernel to judge; nullptr for cases that judge files
  // round_trip of a TorchScript golden: who loads, runs and saves it. nullptr: the case stands in for
  // providers that are not there, and its verdict is not_supported.
  const qcts_provider* runner = nullptr;

  bool judges_file() const { return implementation == nullptr && runner == nullptr; }
  std::string provider()
      const;  // "qcts" for cases that judge files, kAbsentRunner where nobody runs a program
  std::string variant() const;  // "" for those, kProgramVariant for a runner
  std::string full_id() const;  // id, "/provider_variant" appended where there is a provider
};

// A prefill has fewer and longer calls than a decode: this many times its share of the plan's latency budget.
inline constexpr double kPrefillBudgetShare = 4;
double budget_share(const Case& c);  // of a latency case

}  // namespace qcts
