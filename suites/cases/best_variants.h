// SPDX-License-Identifier: BSD-3-Clause
// Chooses the best implementation of each provider, for plans that take only those. The choice depends on
// which builtin kernels serve the case; whoever loads them is asked.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "suites/cases/case.h"

namespace qcts {

struct Offer;

// Does the offer's kernel serve the case? `offer` is a builtin kernel's: a plug-in need not answer before it
// has operands.
struct SupportQuestion {
  const Case* asked = nullptr;
  const Offer* offer = nullptr;
};
// Returns one answer for each question, in their order.
using AskSupport = std::function<std::vector<bool>(std::span<const SupportQuestion>)>;

// Returns answers from kernels in this process. `registry` must outlive the result and have the kernels of
// all offers.
AskSupport ask_registry(const Registry& registry);

// Does the implementation of `c`, which has a synthetic input, serve it? Calls its supports() without planes
// and with x, y and bias in the weight's dtype, as in all timed cases.
bool is_served(const Case& c);

// Does best_of() need to know whether the offer serves the case?
bool is_asked(const Case& c, const Offer& offer);

// Returns, from `found` (best first), each provider's first offer that runs on this machine and serves the
// case; if none serves it, the first that runs, to report the reason. For latency of linear, returns several
// offers of a provider if the order cannot tell which is faster. `serves` is called only where is_asked();
// other offers count as serving.
std::vector<const Offer*> best_of(const Case& c, std::span<const Offer* const> found,
                                  const std::function<bool(const Offer&)>& serves);

}  // namespace qcts
