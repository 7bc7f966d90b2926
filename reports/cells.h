// SPDX-License-Identifier: BSD-3-Clause
// The model of a run: verdicts counted by cell, and those that did not pass in groups with one cause.
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
  // Passes, each counted by its weakest evidence.
  uint64_t confirmed = 0, emulated = 0, reference = 0, other = 0;
  double wall_us = 0;

  std::string implementation() const;  // "builtin_avx2"; "qcts" without a variant
};

// Sorted by kind, operation, scheme, provider and variant. The verdicts must outlive the cells.
std::vector<Cell> cells_of(const std::vector<Verdict>& verdicts);

// Verdicts of one provider with one status and one cause: the diagnosed hypothesis, otherwise the field that
// differs, otherwise the reason without its numbers.
struct Group {
  std::string provider;
  Status status = Status::fail;
  std::string hypothesis;                // empty: the diagnosis names none
  std::string what;                      // the hypothesis, or the reason without numbers
  bool blocks = false;                   // some of them prevent conformance
  std::vector<const Verdict*> verdicts;  // simplest first: numerics first, then small shapes

  std::string name() const;  // "builtin fail: scale of the next group"; the same in the next run
};

// Without passes. First those that prevent conformance, wrong answers before crashes and faults of qcts; of
// equals, the largest group first.
std::vector<Group> groups_of(const std::vector<const Verdict*>& verdicts, bool gate_latency);
std::vector<Group> groups_of(const std::vector<Verdict>& verdicts, bool gate_latency);

// Returns the text between "hypothesis: " and its prediction; "" if the reason names none.
std::string hypothesis_of(const std::string& reason);
// Sorts wrong answers before crashes, and those before weak and undecided results: 0 is most urgent.
int urgency(Status status);
// Cuts what a provider wrote to at most 2,000 bytes.
std::string clipped_text(const std::string& text);

}  // namespace qcts
