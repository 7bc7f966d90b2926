// SPDX-License-Identifier: BSD-3-Clause
// Descriptions of a provider's kernels.
// A worker sends the offers in its handshake.
// The parent can therefore pair cases with kernels without loading any kernel.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "reports/asked.h"
#include "suites/cases/best_variants.h"
#include "suites/cases/case.h"
#include "suites/cases/plan.h"
#include "suites/inputs/input_kind.h"
#include "suites/providers/problem.h"

namespace qcts {

// One kernel, or the load_save function of a provider (op Op::file).
struct Offer {
  std::string provider;
  Op op = Op::file;
  std::string scheme;  // as qcts_kernel::scheme: a family, or "family:policy,..."
  std::string variant;
  bool is_emulated = false;
  bool is_runnable = true;     // false: this machine lacks a feature that the variant needs
  bool runs_programs = false;  // Op::file only: the provider loads, runs and saves TorchScript
  bool is_builtin = false;     // the kernel is part of this program
  std::string layouts{};       // as qcts_kernel::reads_layouts; empty for NULL
  // The widest kind of inputs on which the provider promises right answers. A provider that promises more
  // than reachable inputs is asked all kinds.
  InputKind promised = InputKind::reachable;

  std::string_view family() const;
  bool takes(Policy activation) const;
  bool reads(Layout layout) const;  // true for every layout unless the op is linear
};

// Returns the offers of one provider. Within an (op, family), the best comes first.
std::vector<Offer> offers_of(const Registry& registry, std::string_view provider);

// Convert an offer to and from JSON. offer_from_json throws std::runtime_error.
nlohmann::ordered_json to_json(const Offer& offer);
Offer offer_from_json(const nlohmann::ordered_json& json);

// Offers of several providers, found by op and family.
class OfferTable {
 public:
  void add(std::vector<Offer> offers);
  std::span<const Offer* const> find(Op op, std::string_view family) const;  // family "" for Op::file
  // Returns every "provider_variant".
  std::vector<std::string> suffixes() const;

 private:
  std::deque<Offer> offers_;
  std::map<std::pair<Op, std::string>, std::vector<const Offer*>, std::less<>> by_op_;
};

// Returns the kind of the planes that a case of kernels reads (suites/inputs/input_kind.h). A golden's are
// reachable.
KindOfInput kind_of(const Case& c);
// Returns the name of that kind for a verdict, or "" if the case judges files or latency.
std::string input_kind_of_verdict(const Case& c);
// Returns "seed 7: m 3, n 37, ..." for a drawn case and "" for others. `seed` is that of the run, or nullopt
// if it is a secret.
std::string problem_of_verdict(const Case& c, std::optional<uint64_t> seed);

// Returns what a provider is asked by a case of kernels with this input.
Asked asked_problem(const Case& c, const KernelInput& input);
// Returns what a provider that loads and saves files is asked by `c`.
Asked asked_of_file(const Case& c);

// Returns true if an offer may judge `c`, which has an op of kernels.
// This is true for more cases than offers_for() finds offers for, because no kernel is asked.
// `with_reference` includes the reference on synthetic inputs, where it is compared with itself.
bool may_be_offered(const Case& c, const Plan& plan, const OfferTable& offers, bool with_reference);

// Returns the questions that offers_for() needs answered.
// Returns none unless the plan takes only the best variants for `c`.
std::vector<SupportQuestion> support_questions(const Case& c, const Plan& plan, const OfferTable& offers);

// Returns the offers that judge `c`, best first. They are kernels of its op, family, policy and layout.
// For round_trip and reject, the offers are providers that load and save files.
// `serves` answers the support_questions().
std::vector<const Offer*> offers_for(const Case& c, const Plan& plan, const OfferTable& offers,
                                     const std::function<bool(const Offer&)>& serves, bool with_reference);

// Returns the offers that would judge `c` if their providers declared "representable_inputs". None if its
// input is reachable.
std::vector<const Offer*> undeclared_offers(const Case& c, const Plan& plan, const OfferTable& offers,
                                            bool with_reference);

// Returns true if this program's own readers judge `c` as well. They judge every file.
// The only exception is a program's round trip, which they judge only if no provider runs programs.
// The verdict then says so.
bool is_judged_by_suite(const Case& c, std::span<const Offer* const> offers);

// Sets the implementation or program runner of `c` to the one with this provider and variant.
// Throws std::runtime_error if `registry` does not have it.
void bind_offer(Case& c, std::string_view provider, std::string_view variant, const Registry& registry);

// Returns "numerics.linear/int8_row/INPUT/builtin_avx2".
std::string full_id(const Case& c, const Offer& offer);

}  // namespace qcts
