// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/offers.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "kernels/abi/problem.h"
#include "suites/inputs/drawn.h"
#include "suites/providers/kernel_run.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace {

constexpr const char* kGoldenFamily = "golden";

Offer offer_of(const Implementation& implementation) {
  const qcts_kernel& kernel = *implementation.kernel;
  return {.provider = implementation.provider,
          .op = op_of(kernel.op),
          .scheme = kernel.scheme,
          .variant = kernel.variant,
          .is_emulated = (kernel.claims & QCTS_CLAIM_EMULATED) != 0,
          .is_runnable = implementation.machine_refusal().empty(),
          .is_builtin = implementation.builtin,
          .layouts = kernel.reads_layouts == nullptr ? "" : kernel.reads_layouts};
}

// Reads the words of qcts_provider::choices that are about inputs.
InputKind promised_inputs(const Registry& registry, std::string_view provider) {
  InputKind promised = InputKind::reachable;
  for (const ProviderInfo& info : registry.providers()) {
    if (info.name != provider) continue;
    std::istringstream words(info.choices);
    for (std::string word; words >> word;) {
      if (word == QCTS_CHOICE_HOSTILE_INPUTS) return InputKind::hostile;
      if (word == QCTS_CHOICE_REPRESENTABLE_INPUTS) promised = InputKind::representable;
    }
  }
  return promised;
}

// An emulator's time means nothing, and a scalar prefill takes too long.
bool is_timed(const Case& c, const Offer& offer, bool times_emulated) {
  const bool prefill = c.id.op == Op::linear && c.synthetic()->m >= kPrefillRows;
  return (times_emulated || !offer.is_emulated) && !(prefill && offer.variant == "scalar");
}

bool takes_long(const Case& c, const Plan& plan) {
  if (c.synthetic() == nullptr) return false;
  const Generator generator = c.synthetic()->generator;
  return generator == Generator::layer || generator == Generator::far ||
         std::ranges::find(plan.best_variant_alone, generator) != plan.best_variant_alone.end();
}

bool takes_best_alone(const Case& c, const Plan& plan) {
  if (c.id.kind == Kind::latency) return plan.latency_best_only;
  return !plan.all_variants || takes_long(c, plan);
}

// Is the offer left out, even if it is the best? Comparing the reference with itself proves nothing.
bool is_left_out(const Case& c, const Plan& plan, const Offer& offer, bool with_reference) {
  if (!is_recorded(c.question, c.id.op) && offer.provider == kReferenceProvider && !with_reference)
    return true;
  if (c.id.kind == Kind::latency && !is_timed(c, offer, plan.latency_of_emulated)) return true;
  return offer.is_emulated && (takes_long(c, plan) || !c.for_emulated);
}

// Returns the kernels of the case's op, family, policy and layout, best first.
std::vector<const Offer*> kernel_offers(const Case& c, const OfferTable& offers, bool declared) {
  std::vector<const Offer*> found;
  for (const Offer* offer : offers.find(c.id.op, c.scheme->family()))
    if (offer->takes(c.activation()) && offer->reads(c.layout())) found.push_back(offer);
  const auto takes_any = [](const Offer* offer) { return offer->promised != InputKind::reachable; };
  // The kind is asked only where it decides.
  const bool needs_declaration =
      !std::ranges::all_of(found, takes_any) && kind_of(c).kind != InputKind::reachable;
  std::erase_if(found,
                [&](const Offer* offer) { return (takes_any(offer) || !needs_declaration) != declared; });
  return found;
}

// Other providers have no strict and lenient modes, so they get the cases that hold in both.
bool is_for_loaders(const Case& c) {
  if (const auto* reject = std::get_if<RejectQuestion>(&c.question))
    return reject->malformed->options.size() == 2;
  return c.id.kind == Kind::round_trip;
}

std::vector<const Offer*> file_offers(const Case& c, const OfferTable& offers) {
  std::vector<const Offer*> found;
  if (!is_for_loaders(c)) return found;
  const bool program = c.golden() != nullptr && is_program(*c.golden());
  for (const Offer* offer : offers.find(Op::file, ""))
    if (offer->runs_programs == program) found.push_back(offer);
  return found;
}

// Linear has rows of two lengths beyond a model's; of other operations the longer ones are among "long", so
// that a limit of k does not take a family away.
std::string_view family_asked(Op op, Generator generator) {
  return generator_name(generator == Generator::deeper && op != Op::linear ? Generator::long_rows
                                                                           : generator);
}

}  // namespace

KindOfInput kind_of(const Case& c) {
  // A weight of another library may hold what the scheme's own recipe never writes.
  if (const Golden::TensorInfo* tensor = tensor_of(c.question); tensor && !tensor->outside_recipe.empty())
    return {InputKind::representable, tensor->outside_recipe};
  if (!c.synthetic() || c.scheme == nullptr) return {};
  return kind_of_input(*c.scheme, c.id.op, *c.synthetic());
}

std::string input_kind_of_verdict(const Case& c) {
  if (c.id.op == Op::file || c.id.kind == Kind::latency) return {};
  return std::string(input_kind_name(kind_of(c).kind));
}

std::string problem_of_verdict(const Case& c, std::optional<uint64_t> seed) {
  if (!c.synthetic() || !c.synthetic()->draw) return {};
  return (seed ? "seed " + std::to_string(*seed) : "secret seed") + ": " +
         problem_text(*c.synthetic(), c.id.op);
}

Asked asked_problem(const Case& c, const KernelInput& input) {
  Asked asked;
  asked.family = c.synthetic() ? family_asked(c.id.op, c.synthetic()->generator) : kGoldenFamily;
  asked.w_dtype = dtype_name(input.weight.dtype);
  if (input.has_rows_of_x()) {
    asked.x_dtype = dtype_name(input.x_dtype);
    asked.m = input.m;
  }
  if (input.op == Op::linear) asked.y_dtype = dtype_name(input.y_dtype);
  if (!input.bias.empty()) asked.bias_dtype = dtype_name(input.bias_dtype);
  asked.policy = input.activation.name();
  asked.layout = input.layout.name();
  asked.n = input.weight.n;
  asked.k = input.weight.k;
  asked.group = input.scheme == nullptr ? 0 : input.scheme->group();
  return asked;
}

Asked asked_of_file(const Case& c) {
  const auto* reject = std::get_if<RejectQuestion>(&c.question);
  const std::filesystem::path& file = reject ? reject->malformed->file : c.golden()->file;
  const std::string end = file.extension().string();
  return {.family = kGoldenFamily, .container = end.empty() ? "folder" : end.substr(1)};
}

std::string_view Offer::family() const { return std::string_view(scheme).substr(0, scheme.find(':')); }

bool Offer::takes(Policy activation) const {
  if (op != Op::linear && op != Op::quantize_activation) return true;
  return lists_policy(scheme.c_str(), std::string(activation.name()).c_str());
}

bool Offer::reads(Layout layout) const {
  return op != Op::linear || reads_layout(layouts.c_str(), std::string(layout.name()).c_str());
}

std::vector<Offer> offers_of(const Registry& registry, std::string_view provider) {
  std::vector<Offer> offers;
  for (const Implementation& implementation : registry.implementations())
    if (implementation.provider == provider) offers.push_back(offer_of(implementation));
  for (const Implementation& implementation : registry.file_implementations()) {
    if (implementation.provider != provider) continue;
    Offer& offer = offers.emplace_back(offer_of(implementation));
    offer.runs_programs = implementation.runs_programs();
    if (offer.runs_programs) offer.variant = kProgramVariant;
  }
  const InputKind promised = promised_inputs(registry, provider);
  for (Offer& offer : offers) offer.promised = promised;
  return offers;
}

nlohmann::ordered_json to_json(const Offer& offer) {
  return {{"provider", offer.provider},      {"op", op_name(offer.op)},
          {"scheme", offer.scheme},          {"variant", offer.variant},
          {"emulated", offer.is_emulated},   {"runnable", offer.is_runnable},
          {"programs", offer.runs_programs}, {"builtin", offer.is_builtin},
          {"layouts", offer.layouts},        {"promised", input_kind_name(offer.promised)}};
}

Offer offer_from_json(const nlohmann::ordered_json& json) {
  const std::string op = json.at("op");
  const std::optional<Op> known = find_op(op);
  if (!known) throw std::runtime_error("no operation '" + op + "'");
  const std::string promised = json.at("promised");
  const std::optional<InputKind> kind = find_input_kind(promised);
  if (!kind) throw std::runtime_error("no kind of inputs '" + promised + "'");
  return {.provider = json.at("provider"),
          .op = *known,
          .scheme = json.at("scheme"),
          .variant = json.at("variant"),
          .is_emulated = json.at("emulated"),
          .is_runnable = json.at("runnable"),
          .runs_programs = json.at("programs"),
          .is_builtin = json.at("builtin"),
          .layouts = json.at("layouts"),
          .promised = *kind};
}

void OfferTable::add(std::vector<Offer> offers) {
  for (Offer& given : offers) {
    const Offer& offer = offers_.emplace_back(std::move(given));
    const std::string family(offer.op == Op::file ? "" : offer.family());
    by_op_[{offer.op, family}].push_back(&offer);
  }
}

std::span<const Offer* const> OfferTable::find(Op op, std::string_view family) const {
  const auto found = by_op_.find(std::pair(op, std::string(family)));
  if (found == by_op_.end()) return {};
  return found->second;
}

std::vector<std::string> OfferTable::suffixes() const {
  std::set<std::string> all;
  for (const Offer& offer : offers_) all.insert(offer.provider + "_" + offer.variant);
  return {all.begin(), all.end()};
}

bool may_be_offered(const Case& c, const Plan& plan, const OfferTable& offers, bool with_reference) {
  const bool best_alone = takes_best_alone(c, plan);
  return std::ranges::any_of(offers.find(c.id.op, c.scheme->family()), [&](const Offer* offer) {
    return offer->takes(c.activation()) && offer->reads(c.layout()) && (offer->is_runnable || !best_alone) &&
           !is_left_out(c, plan, *offer, with_reference);
  });
}

std::vector<SupportQuestion> support_questions(const Case& c, const Plan& plan, const OfferTable& offers) {
  std::vector<SupportQuestion> questions;
  if (c.id.op == Op::file || !takes_best_alone(c, plan)) return questions;
  for (const Offer* offer : kernel_offers(c, offers, true))
    if (is_asked(c, *offer)) questions.push_back({&c, offer});
  return questions;
}

std::vector<const Offer*> offers_for(const Case& c, const Plan& plan, const OfferTable& offers,
                                     const std::function<bool(const Offer&)>& serves, bool with_reference) {
  if (c.id.op == Op::file) return file_offers(c, offers);
  std::vector<const Offer*> found = kernel_offers(c, offers, true);
  if (takes_best_alone(c, plan)) found = best_of(c, found, serves);
  std::erase_if(found, [&](const Offer* offer) { return is_left_out(c, plan, *offer, with_reference); });
  return found;
}

std::vector<const Offer*> undeclared_offers(const Case& c, const Plan& plan, const OfferTable& offers,
                                            bool with_reference) {
  if (c.id.op == Op::file) return {};
  std::vector<const Offer*> found = kernel_offers(c, offers, false);
  std::erase_if(found, [&](const Offer* offer) { return is_left_out(c, plan, *offer, with_reference); });
  return found;
}

bool is_judged_by_suite(const Case& c, std::span<const Offer* const> offers) {
  if (c.id.op != Op::file) return false;
  return c.id.kind != Kind::round_trip || !is_program(*c.golden()) || offers.empty();
}

void bind_offer(Case& c, std::string_view provider, std::string_view variant, const Registry& registry) {
  c.promised = promised_inputs(registry, provider);
  if (c.id.op == Op::file) {
    for (const Implementation& each : registry.file_implementations()) {
      if (each.provider != provider) continue;
      (variant == kProgramVariant ? c.runner : c.implementation) = &each;
      return;
    }
  } else {
    for (const Implementation* each :
         registry.find(abi_op(c.id.op), c.scheme->family(), c.activation().name())) {
      if (each->provider != provider || each->kernel->variant != variant || !each->reads(c.layout().name()))
        continue;
      c.implementation = each;
      return;
    }
  }
  throw std::runtime_error(std::string(provider) + " has no " + std::string(variant) + " for " + c.id.text());
}

std::string full_id(const Case& c, const Offer& offer) {
  return c.id.text() + "/" + offer.provider + "_" + offer.variant;
}

}  // namespace qcts
