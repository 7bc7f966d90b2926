// SPDX-License-Identifier: BSD-3-Clause
// Checks a statement offline, and judges a random sample of its cases again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qcts {

struct VerifyRequest {
  std::filesystem::path statement;
  std::filesystem::path run;         // empty: only the statement; otherwise the record must be the same
  std::filesystem::path provider;    // empty: nothing is judged again
  std::filesystem::path public_key;  // a PEM file; empty: the key in the statement
  double sample_percent = 5;         // of the cases, and at least kMinSample
  unsigned jobs = 0;                 // as for `qcts run`
};

inline constexpr size_t kMinSample = 50;

struct VerifyResult {
  std::vector<std::string> faults;  // each begins with the name of a field; empty: accepted
  std::vector<std::string> lines;   // what was stated, who signed, what was checked
  std::string vendor, product;
  std::string signature;  // "signed by KEY ID", or "unsigned"
};

// Returns what a file holds. Throws UsageError if it cannot be read.
std::string statement_text(const std::filesystem::path& file);

// Throws UsageError if a file cannot be read.
VerifyResult verify_statement(const VerifyRequest& request);

}  // namespace qcts
