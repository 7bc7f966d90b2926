// SPDX-License-Identifier: BSD-3-Clause
// The predicate "urn:qcts:verdict:v1" of an in-toto statement: what one complete run shows of one provider.
// A verifier counts the claim again from the verdicts in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fixtures/golden.h"
#include "suites/record/run_record.h"
#include "suites/statement/signing_key.h"

namespace qcts {

inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr std::string_view kPredicateType = "urn:qcts:verdict:v1";

// A verdict of the record, reduced to what decides a claim, and the SHA-256 of its line there.
struct StatedVerdict {
  Verdict verdict;  // id, provider, variant, status, kind of input, what was asked, and the output's hash
  std::string sha256;
};

struct Predicate {
  std::string vendor, product;
  std::optional<PublicKey> signer;
  RunHead head;
  std::string head_sha256;  // of the record's first line
  std::vector<StatedVerdict> verdicts;
  nlohmann::ordered_json claim;  // to_json(ProviderClaim)
};

// Says what the verdicts show, counted with the lists of this installation and without waivers.
struct Recount {
  std::string refusal;  // why the run supports no statement: "narrowed by --filter x"; "" if it does
  nlohmann::ordered_json claim;
  std::string line;  // "CONFORMANT: acme 1, ..."
};
Recount recount(const RunHead& head, std::vector<Verdict> verdicts, const Fixtures& fixtures);

// Returns the statement, whose subject is the provider's library.
nlohmann::ordered_json statement_json(const Predicate& predicate);
// Throws std::runtime_error, which names the field, for a statement of another form or with other fields.
Predicate predicate_from_statement(const nlohmann::ordered_json& statement);

// Returns a verdict with the fields that a statement keeps.
Verdict stated(const Verdict& verdict);
std::string text_sha256(const std::string& text);

}  // namespace qcts
