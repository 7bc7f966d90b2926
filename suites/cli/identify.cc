// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/identify.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <unistd.h>

#include "reports/waivers.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/cases/named.h"
#include "suites/identify/option_shares.h"
#include "suites/run/workers/provider_worker.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

// One kernel on one scheme, on one policy of x and one layout if it has them.
struct Identified {
  std::string kernel;  // "acme_scalar"
  Op op = Op::quantize;
  const Scheme* scheme = nullptr;
  Policy policy = {};
  Layout layout = {};
  Identification answers;

  std::string asked() const {
    return std::string(scheme->name()) + (policy == kWeightOnly ? "" : ":" + std::string(policy.name())) +
           (layout == kPlain ? "" : ", " + std::string(layout.name()));
  }
  bool is_as_asked() const {
    return answers.faults() == 0 && answers.answered() > 0 && answers.fits(answers.options().front());
  }
};

bool is_chosen(const Scheme& scheme, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& word) {
           return word == scheme.family() || glob_match(word, scheme.name());
         });
}

std::vector<Policy> policies_of(const Offer& offer, const Scheme& scheme) {
  if (offer.op != Op::quantize_activation && offer.op != Op::linear) return {kWeightOnly};
  std::vector<Policy> policies;
  for (const Policy policy : scheme.activations())
    if (offer.takes(policy) && (policy != kWeightOnly || offer.op == Op::linear)) policies.push_back(policy);
  return policies;
}

// A linear that reads layout "plain" is asked only in that layout.
std::vector<Layout> layouts_of(const Offer& offer, const Scheme& scheme) {
  const bool packs = offer.op == Op::pack || offer.op == Op::unpack;
  if (!packs && (offer.op != Op::linear || offer.reads(kPlain))) return {kPlain};
  std::vector<Layout> layouts;
  for (const LayoutInfo& info : scheme.layouts())
    if (const Layout layout = scheme.layout_named(info.name);
        layout != kPlain && (packs || offer.reads(layout)))
      layouts.push_back(layout);
  return layouts;
}

Identified identified(const Offer& offer, const Scheme& scheme, Policy policy, Layout layout,
                      const IdentifyRequest& request, ProviderWorker& worker) {
  Identified one{offer.provider + "_" + offer.variant, offer.op, &scheme, policy, layout, {}};
  const std::vector<KernelInput> inputs = identifying_inputs(offer.op, scheme, policy, layout);
  const std::vector<Verdict> verdicts = worker.ask_for_shares(inputs, offer, request.timeout_s);
  for (size_t i = 0; i < inputs.size(); ++i) one.answers.add(inputs[i], verdicts[i]);
  return one;
}

std::vector<Identified> identified(const IdentifyRequest& request, ProviderWorker& worker) {
  std::vector<Identified> all;
  for (const Offer& offer : worker.offers()) {
    if (offer.op == Op::file || !offer.is_runnable) continue;
    if (!request.variant.empty() && offer.variant != request.variant) continue;
    for (const Scheme* scheme : schemes()) {
      if (scheme->family() != offer.family() || !is_chosen(*scheme, request.schemes)) continue;
      for (const Policy policy : policies_of(offer, *scheme))
        for (const Layout layout : layouts_of(offer, *scheme)) {
          Identified one = identified(offer, *scheme, policy, layout, request, worker);
          if (one.answers.asked() > 0) all.push_back(std::move(one));
        }
    }
  }
  return all;
}

std::string equal_of(uint64_t equal, uint64_t all) {
  return with_commas(static_cast<double>(equal)) + " of " + with_commas(static_cast<double>(all));
}

std::string counts_words(const OptionShare& option) {
  std::string text = equal_of(option.equal, option.codes) + (option.scales == 0 ? "" : " codes");
  if (option.scales != 0) text += ", " + equal_of(option.equal_scales, option.scales) + " scales";
  return text;
}

// "mxfp4_even, 8,448 of 8,448 codes, 264 of 264 scales; asked: mxfp4_floor, 7,431 of 8,448 codes, ..."
std::string computed_words(const Identified& one) {
  const OptionShare& asked = one.answers.options().front();
  if (one.answers.fits(asked)) return "as asked, " + counts_words(asked);
  const std::vector<const OptionShare*> fits = one.answers.fitting();
  std::string text;
  for (const OptionShare* fit : fits) text += (text.empty() ? "" : " or ") + fit->name;
  if (!fits.empty()) {
    text += ", " + counts_words(*fits.front());
  } else {
    const OptionShare& nearest = one.answers.nearest();
    text = "none; nearest " + nearest.name + ", " + counts_words(nearest) + " (" +
           fixed(std::floor(nearest.share() * 1000) / 10, 1) + " %)";
  }
  return text + "; asked: " + asked.name + ", " + counts_words(asked);
}

void print_one(const Identified& one, Printout& out) {
  const std::string head = std::string(op_name(one.op)) + " " + one.asked() + ", " + one.kernel + ": ";
  if (one.answers.answered() == 0) {
    out.text(head + "no answer; " + one.answers.why_not(), 0,
             one.answers.faults() > 0 ? Ink::red : Ink::plain);
    return;
  }
  out.text(head + computed_words(one), 0, one.is_as_asked() ? Ink::green : Ink::red);
  if (one.answers.answered() < one.answers.asked())
    out.text(equal_of(one.answers.answered(), one.answers.asked()) + " inputs were answered; " +
                 one.answers.why_not(),
             2);
  for (const std::vector<std::string>& set : one.answers.not_told_apart()) {
    std::string names;
    for (const std::string& name : set) names += (names.empty() ? "" : " = ") + name;
    out.text("no input can tell apart: " + names, 2, Ink::faint);
  }
}

Json option_json(const OptionShare& option, const Identification& answers) {
  return {{"option", option.name},
          {"choice", option.choice.empty() ? Json(nullptr) : Json(option.choice)},
          {"fits", answers.fits(option)},
          {"codes", option.codes},
          {"equal_codes", option.equal},
          {"scales", option.scales},
          {"equal_scales", option.equal_scales},
          {"inputs", option.inputs}};
}

Json one_json(const Identified& one) {
  Json options = Json::array(), fits = Json::array();
  for (const OptionShare& option : one.answers.options()) options.push_back(option_json(option, one.answers));
  for (const OptionShare* fit : one.answers.fitting()) fits.push_back(fit->name);
  const bool answered = one.answers.answered() > 0;
  return {{"kernel", one.kernel},
          {"op", op_name(one.op)},
          {"scheme", one.scheme->name()},
          {"policy", one.policy.name()},
          {"layout", one.layout.name()},
          {"inputs", one.answers.asked()},
          {"answered", one.answers.answered()},
          {"faults", one.answers.faults()},
          {"reason", one.answers.why_not()},
          {"as_asked", one.is_as_asked()},
          {"computes", fits},
          {"nearest", answered ? Json(one.answers.nearest().name) : Json(nullptr)},
          {"not_told_apart", one.answers.not_told_apart()},
          {"options", options}};
}

Outcome conclusion(const std::vector<Identified>& all) {
  Outcome outcome = Outcome::nothing_proved;
  for (const Identified& one : all) {
    if (one.answers.answered() + one.answers.faults() == 0) continue;
    if (!one.is_as_asked()) return Outcome::failed;
    outcome = Outcome::conformant;
  }
  return outcome;
}

}  // namespace

Outcome identify(const IdentifyRequest& request) {
  JudgeSettings settings;
  settings.program = program_word();
  settings.threads = request.threads;
  ProviderWorker worker(located_provider(request.provider), settings);
  const std::vector<Identified> all = identified(request, worker);
  if (all.empty())
    throw RunError(Outcome::nothing_proved, request.provider + " has no kernel of these schemes");
  if (request.json) {
    Json kernels = Json::array();
    for (const Identified& one : all) kernels.push_back(one_json(one));
    print_json("identify", {{"provider", request.provider}, {"kernels", kernels}});
    return conclusion(all);
  }
  Printout out(screen_of(STDOUT_FILENO));
  for (const Identified& one : all) print_one(one, out);
  std::cout << out.str();
  return conclusion(all);
}

}  // namespace qcts::cli
