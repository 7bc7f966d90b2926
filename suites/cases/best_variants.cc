// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/best_variants.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "suites/cases/offers.h"
#include "suites/providers/problem.h"

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
  if (pairs && c.synthetic->weight.dtype != DType::bfloat16) return offer.provider + " pairs";
  // A tile takes the same time for one row as for sixteen.
  if (tiles && c.synthetic->m == 1) return offer.provider + " tiles";
  if (c.activation == kWeightOnly && c.synthetic->m <= kFewRows && variant.ends_with("vnni"))
    return offer.provider + " bytes";
  return offer.provider;
}

// The problem has no planes: the builtin kernels check planes only if they are given.
bool serves(const Case& c, const Offer& offer) {
  if (offer.own_kernel == nullptr || !c.synthetic) return true;
  KernelInput input;
  input.op = c.id.op;
  input.scheme = c.scheme;
  input.weight = c.synthetic->weight;
  input.layout = c.layout;
  input.m = c.synthetic->m;
  input.activation = c.activation;
  input.x_dtype = input.y_dtype = input.weight.dtype;
  const ProblemBuilder builder(input, 1);
  qcts_problem p = builder.problem();
  p.bias_dtype = p.x_dtype = p.y_dtype = p.w_dtype;  // as in all timed cases
  return offer.own_kernel->supports(&p, nullptr, 0) == QCTS_OK;
}

}  // namespace

std::vector<const Offer*> best_of(const Case& c, const std::vector<const Offer*>& found) {
  std::vector<const Offer*> here;
  std::ranges::copy_if(found, std::back_inserter(here), [](const Offer* each) { return each->is_runnable; });
  std::set<std::string> served;  // by a kernel of these providers
  for (const Offer* each : here)
    if (serves(c, *each)) served.insert(each->provider);
  std::set<std::string> groups;
  std::vector<const Offer*> best;
  for (const Offer* each : here)
    if ((!served.contains(each->provider) || serves(c, *each)) && groups.insert(group_of(c, *each)).second)
      best.push_back(each);
  return best;
}

}  // namespace qcts
