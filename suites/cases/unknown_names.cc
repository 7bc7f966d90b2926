// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/unknown_names.h"

#include <algorithm>
#include <set>

#include "suites/base/did_you_mean.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

constexpr std::string_view kDense = "dense";  // the float layer that latency is compared with

std::string quoted_with_nearest(const std::string& word, const std::set<std::string>& known) {
  const std::vector<std::string> candidates(known.begin(), known.end());
  const std::string near = nearest(word, candidates);
  return "'" + word + "'" +
         (near.empty()          ? ""
          : is_near(word, near) ? did_you_mean(word, candidates)
                                : " (the nearest: '" + near + "')");
}

std::set<std::string> known_families() {
  std::set<std::string> names;
  for (const Scheme* scheme : schemes()) names.emplace(scheme->family());
  return names;
}

std::set<std::string> policies_of_family(std::string_view family) {
  std::set<std::string> names;
  for (const Scheme* scheme : schemes())
    if (scheme->family() == family)
      for (const Policy policy : scheme->activations()) names.emplace(policy.name());
  return names;
}

// The words after the colon of "int8_row:dyn_row_sym,weight_only"; none without a colon.
std::vector<std::string> listed_policies(const std::string& scheme) {
  std::vector<std::string> words;
  size_t at = scheme.find(':');
  while (at != scheme.npos) {
    const size_t end = scheme.find(',', at + 1);
    words.push_back(scheme.substr(at + 1, end == scheme.npos ? end : end - at - 1));
    at = end;
  }
  return words;
}

std::string unknown_scheme(const std::string& family) {
  if (const Scheme* scheme = find_scheme(family))
    return "'" + family + "' is one scheme; a kernel names its family, '" + std::string(scheme->family()) +
           "'";
  return "no scheme " + quoted_with_nearest(family, known_families());
}

// Is there an input for the offer, in the largest set and for some scheme of its family?
bool has_input(const Offer& offer) {
  const bool has_policies = offer.op == Op::linear || offer.op == Op::quantize_activation;
  const bool is_packing = offer.op == Op::pack || offer.op == Op::unpack;
  for (const Scheme* scheme : schemes()) {
    if (scheme->family() != offer.family()) continue;
    for (const Layout layout : scheme->layouts()) {
      if ((layout == kPlain) == is_packing || !offer.reads(layout)) continue;
      for (const Synthetic& input :
           synthetic_inputs(Kind::numerics, offer.op, *scheme, layout, InputSet::all))
        if (!has_policies || offer.takes(input.activation)) return true;
    }
  }
  return false;
}

}  // namespace

UnknownNames unknown_names(std::span<const Offer> offers) {
  UnknownNames found;
  const std::set<std::string> families = known_families();
  for (const Offer& offer : offers) {
    if (offer.op == Op::file) continue;
    const std::string family(offer.family());
    const std::string who = std::string(op_name(offer.op)) + " of " + offer.variant + ": ";
    if (family != kDense && !families.contains(family)) {
      found.lines.push_back(who + unknown_scheme(family));
      found.never_asked.push_back(found.lines.back());
      continue;
    }
    if (family != kDense && !has_input(offer))
      found.never_asked.push_back(who + "no case asks this of " + std::string(offer.scheme));
    if (offer.op != Op::linear && offer.op != Op::quantize_activation) continue;
    const std::set<std::string> known = policies_of_family(family);
    const std::vector<std::string> listed = listed_policies(offer.scheme);
    for (const std::string& policy : listed) {
      if (policy == "*" || known.contains(policy)) continue;
      found.lines.push_back(who + family + " has no policy " + quoted_with_nearest(policy, known));
    }
  }
  return found;
}

}  // namespace qcts
