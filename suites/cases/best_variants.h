// SPDX-License-Identifier: BSD-3-Clause
// Chooses the best implementation of each provider, for plans that run no others.
// The choice depends on which builtin kernels serve the case. The process that loads them is asked.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "suites/cases/case.h"

namespace qcts {

struct Offer;

// Asks whether the kernel of an offer serves the case. The offer is always a builtin kernel's.
// A plug-in need not answer before it has operands.
struct SupportQuestion {
  const Case* asked = nullptr;
  const Offer* offer = nullptr;
};
// Returns one answer for each question, in the order of the questions.
using AskSupport = std::function<std::vector<bool>(std::span<const SupportQuestion>)>;

// Returns a function that asks the kernels in this process.
// `registry` must outlive the result and have the kernels of all offers.
AskSupport ask_registry(const Registry& registry);

// Returns true if the implementation of `c`, which has a synthetic input, serves it.
// Calls its supports() without planes and with x, y and bias in the weight's dtype, as in all timed cases.
bool is_served(const Case& c);

// Returns true if best_of() needs to know whether the offer serves the case.
bool is_asked(const Case& c, const Offer& offer);

// Returns each provider's first offer in `found` (best first) that runs on this machine and serves the case.
// If no offer serves it, returns the first that runs, to report the reason.
// For latency of linear, returns several offers of a provider if the order cannot tell which is faster.
// `serves` is called only if is_asked() is true. All other offers count as serving.
std::vector<const Offer*> best_of(const Case& c, std::span<const Offer* const> found,
                                  const std::function<bool(const Offer&)>& serves);

}  // namespace qcts
