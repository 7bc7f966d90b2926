// SPDX-License-Identifier: BSD-3-Clause
// Counts the verdicts of a run by cell, and groups the verdicts that did not pass by cause.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

// The verdicts of one kind, operation, scheme and implementation.
struct Cell {
  Kind kind = Kind::numerics;
  Op op = Op::file;
  std::string scheme, provider, variant;
  std::vector<const Verdict*> verdicts;  // in the order of their ids
  std::array<uint64_t, kStatusCount> statuses{};
  // Number of passes, each counted once under its weakest evidence.
  uint64_t confirmed = 0, emulated = 0, reference = 0, other = 0;
  double wall_us = 0;

  std::string implementation() const;  // "builtin_avx2"; "qcts" without a variant
};

// Returns the cells, sorted by kind, operation, scheme, provider and variant.
// The verdicts must outlive the cells.
std::vector<Cell> cells_of(const std::vector<Verdict>& verdicts);

// Verdicts of one provider with one status and one cause.
// The cause is the diagnosed hypothesis. A small case without one joins a hypothesis of other cases if it
// agrees with it. Without a hypothesis, the cause is the check that failed (check_of()) or, without that, the
// field that differs or, without that, the reason without its numbers. failure_title() has the text for
// people.
struct Group {
  std::string provider;
  Status status = Status::fail;
  std::string hypothesis;                // empty if the diagnosis names none
  std::string what;                      // the hypothesis, or the reason without numbers
  bool blocks = false;                   // some of these verdicts prevent conformance
  std::vector<const Verdict*> verdicts;  // simplest first: numerics first, then small shapes

  std::string name() const;  // the key, "builtin fail: scale of the next group"; equal in the next run
};

// Returns groups of the verdicts that did not pass.
// Groups that prevent conformance come first: wrong answers, then crashes, then faults of qcts.
// Among equals, the largest group comes first.
std::vector<Group> groups_of(const std::vector<const Verdict*>& verdicts, bool gate_latency);
std::vector<Group> groups_of(const std::vector<Verdict>& verdicts, bool gate_latency);

// Returns the rank of a status; 0 is most urgent.
// Wrong answers come before crashes, and crashes come before weak and undecided results.
int urgency(Status status);
// Cuts the text of a provider to at most 2,000 bytes.
std::string clipped_text(const std::string& text);

}  // namespace qcts
