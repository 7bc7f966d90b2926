// SPDX-License-Identifier: BSD-3-Clause
// Says what a complete run shows about one provider: which operations of which schemes it serves, and with
// which limits.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/case_id.h"
#include "reports/decline_limits.h"

namespace qcts {

struct RunReport;

// The mustpass cases of one operation of one scheme. Files of all schemes count together, as Op::file of
// "any". A case with several variants is served if one passes; variants that cannot run here do not count.
struct ServedPart {
  Op op = Op::linear;
  std::string scheme;
  uint64_t asked = 0, passed = 0, declined = 0;
  std::set<std::string> policies, dtypes;  // of the cases that passed; the type of x, or else of the weight
  // Families of inputs without a pass, other than those that a limit of types, policies or layouts excludes.
  std::vector<std::string> missing_families;

  bool is_enough()
      const;  // at least half of the cases passed, the others were declined, no family is missing
};

// The promise of a provider, made before it was judged.
struct PromisedProfile {
  std::string provider, names;     // names of profiles, separated by spaces
  std::vector<std::string> cases;  // the mustpass cases of these profiles, sorted
};

struct ProviderClaim {
  std::string provider, version;
  std::string profile;                // the promised ones; "" if none was promised
  std::vector<std::string> options;   // of the ledger, which the profiles set in place of the schemes' own
  std::string broken_promise;         // why it does not serve them; "" if it does
  std::vector<ServedPart> parts;      // those with a pass
  std::vector<std::string> unserved;  // those without one: "linear of intx_b3_g32_asym"
  std::vector<Limit> limits;  // of `parts`; of each operation and family of schemes at most kMaxLimits
  std::vector<std::string> irregular;  // ids of the declined cases of `parts` that no limit explains

  uint64_t asked() const;
  uint64_t passed() const;
  uint64_t declined() const;
  // A promised profile is served, or else every part is enough and nothing irregular was declined.
  bool is_conformant() const;
  // "acme 1, linear of int8_row, weight_only, bf16 f32 (239 of 239; declined: x float16, 36)"
  std::string text() const;
  // Why it is not conformant: "linear of int8_row: 24 of 277 mustpass cases pass, fewer than half".
  std::string lack() const;
};

// Returns a claim for each provider that is neither a peer nor part of qcts and has a pass. Returns none if
// the run was narrowed by more than the choice of providers, was stopped, has shards, or ran on a fake
// device.
std::vector<ProviderClaim> provider_claims(const RunReport& report);

// Returns "acme promises int8_row, but declined 3 of its 812 cases, first numerics.linear/..." for a provider
// that does not serve a case of its profiles, and otherwise "". A case without a kernel is named only if the
// run was narrowed by no more than the choice of providers.
std::string broken_promise(const RunReport& report);

// Returns "acme declined all 277 cases: float16 only" for a provider that declined everything it was asked,
// and otherwise "". Providers that are peers or part of qcts do not count.
std::string declined_everything(const RunReport& report);

// Returns true for builtin, the reference, the file readers and the place of an absent provider.
bool is_part_of_qcts(const std::string& provider);

nlohmann::ordered_json to_json(const ProviderClaim& claim);

}  // namespace qcts
