// SPDX-License-Identifier: BSD-3-Clause
// Which libraries agree with the vectors, as scripts/vector_agreement measured it by running them.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "suites/vectors/vectors.h"

namespace qcts {

// One library on the vectors of one scheme and dtype.
struct Agreement {
  std::string library, version;  // "torchao", "0.18.0"
  std::string commit;            // of a library without releases; otherwise empty
  std::string date;              // "2026-01-31", when it ran
  std::string compared;          // what the library computed, one line
  std::string scheme;
  DType dtype = DType::bfloat16;
  std::string vectors_sha256;  // VectorGroup::sha256() of what it ran on
  size_t asked = 0;
  std::set<std::string> differing;  // ids
  // Those ids by the option of the ledger that gives all that the library computes of them; the others, of
  // which no option does, are absent. Empty in rows that were measured before options were.
  std::map<std::string, std::set<std::string>> by_choice;
};

// A library that could not be run on these schemes.
struct NotMeasured {
  std::string library, schemes, why;  // `schemes`: patterns, separated by commas
};

struct AgreementTable {
  std::vector<Agreement> measured;
  std::vector<NotMeasured> not_measured;

  // Returns the rows measured on exactly these vectors.
  std::vector<const Agreement*> of(const VectorGroup& group) const;
  // Returns the libraries that were measured on other vectors of this scheme and dtype.
  std::vector<std::string> outdated(const VectorGroup& group) const;
};

// Throws std::runtime_error, which names the entry and the field.
AgreementTable read_agreement(const std::filesystem::path& file);

}  // namespace qcts
