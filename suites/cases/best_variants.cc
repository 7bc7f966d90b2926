// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/best_variants.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "suites/cases/offers.h"
#include "suites/providers/problem.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

// Rows of x up to which multiplying bytes may be faster than multiplying pairs of bfloat16, if x is not
// quantized: integers need little decoding, but two products each. Bytes against pairs, int8 on an EPYC Zen 4
// with one thread: m = 4 1.2 times as fast, m = 8 equal, m = 16 0.9 times.
constexpr int64_t kFewRows = 4;

// Returns the name of the group that `offer` competes in: its provider, or a part of it if the order of
// variants cannot tell which is faster or if many of the first variants may refuse the case.
std::string group_of(const Case& c, const Offer& offer) {
  if (c.id.kind != Kind::latency || c.id.op != Op::linear) return offer.provider;
  const std::string_view variant = offer.variant;
  const bool tiles = variant == "amx", pairs = tiles || variant == "avx512bf16" || variant == "avx512vbmi";
  // Most of these refuse an x that is not bfloat16.
  if (pairs && c.synthetic()->weight.dtype != DType::bfloat16) return offer.provider + " pairs";
  // A tile takes the same time for one row as for sixteen.
  if (tiles && c.synthetic()->m == 1) return offer.provider + " tiles";
  if (c.activation() == kWeightOnly && c.synthetic()->m <= kFewRows && variant.ends_with("vnni"))
    return offer.provider + " bytes";
  return offer.provider;
}

}  // namespace

AskSupport ask_registry(const Registry& registry) {
  return [&registry](std::span<const SupportQuestion> questions) {
    std::vector<bool> answers;
    for (const auto& [asked, offer] : questions) {
      Case bound = *asked;
      bind_offer(bound, offer->provider, offer->variant, registry);
      answers.push_back(is_served(bound));
    }
    return answers;
  };
}

bool is_served(const Case& c) {
  KernelInput input;
  input.op = c.id.op;
  input.scheme = c.scheme;
  input.weight = c.synthetic()->weight;
  input.layout = c.layout();
  input.m = c.synthetic()->m;
  input.activation = c.activation();
  input.x_dtype = input.y_dtype = input.weight.dtype;
  const ProblemBuilder builder(input, 1);
  qcts_problem p = builder.problem();
  p.bias_dtype = p.x_dtype = p.y_dtype = p.w_dtype;
  try {
    return provider_supports(*c.implementation->kernel, p).status == QCTS_OK;
  } catch (const ProviderFault&) {
    return true;  // its case is judged, and the verdict says what is wrong
  }
}

bool is_asked(const Case& c, const Offer& offer) {
  return offer.is_builtin && offer.is_runnable && c.synthetic() != nullptr;
}

std::vector<const Offer*> best_of(const Case& c, std::span<const Offer* const> found,
                                  const std::function<bool(const Offer&)>& serves) {
  std::vector<const Offer*> here, serving;
  std::ranges::copy_if(found, std::back_inserter(here), [](const Offer* each) { return each->is_runnable; });
  std::ranges::copy_if(here, std::back_inserter(serving),
                       [&](const Offer* each) { return !is_asked(c, *each) || serves(*each); });
  std::set<std::string> served;  // by a kernel of these providers
  for (const Offer* each : serving) served.insert(each->provider);
  std::set<std::string> groups;
  std::vector<const Offer*> best;
  for (const Offer* each : here) {
    const bool is_serving = std::ranges::find(serving, each) != serving.end();
    if ((is_serving || !served.contains(each->provider)) && groups.insert(group_of(c, *each)).second)
      best.push_back(each);
  }
  return best;
}

}  // namespace qcts
