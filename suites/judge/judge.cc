// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/judge.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <new>

#include "suites/cases/offers.h"
#include "suites/judge/files/file_kinds.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

bool holds(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// Did an emulated operation make bytes of the golden's file?
bool has_emulated_bytes(const Golden& golden) {
  return std::ranges::any_of(golden.tensors, [](const Golden::TensorInfo& tensor) {
    const Scheme* scheme = find_scheme(tensor.scheme);
    const bool made = scheme == nullptr || scheme->quantizes_weight();
    return made && (holds(tensor.emulated, "quantize") || holds(tensor.emulated, "pack"));
  });
}

// Returns whether an emulated operation produced the expected values. pack, unpack, dequantize and linear
// start from packed bytes; only quantize compares just the codes.
bool is_emulated(const Case& c) {
  if (c.golden() == nullptr) return false;
  if (c.id.op == Op::file) return has_emulated_bytes(*c.golden());
  if (const auto* asked = std::get_if<TensorQuestion>(&c.question))
    for (const Golden::TensorInfo& tensor : c.golden()->tensors)
      if (tensor.name == asked->tensor)
        return c.id.op == Op::quantize ? holds(tensor.emulated, "quantize") : !tensor.emulated.empty();
  return !c.golden()->emulated.empty();
}

void add_evidence(const Case& c, Verdict& verdict) {
  const auto add = [&](const char* kind) {
    if (!holds(verdict.evidence, kind)) verdict.evidence.push_back(kind);
  };
  if (c.golden() != nullptr) add("golden");
  if (std::holds_alternative<RejectQuestion>(c.question)) add("malformed");
  if (std::holds_alternative<SyntheticQuestion>(c.question) && c.id.kind == Kind::numerics) add("reference");
  if (is_joined(c.question) && !is_recorded(c.question, c.id.op)) add("reference");
  if (is_emulated(c)) add("emulated");
}

void dispatch(const Case& c, const JudgeContext& context, Verdict& verdict) {
  switch (c.id.kind) {
    case Kind::round_trip:
      return c.implementation ? judge_provider_round_trip(c, context, verdict)
                              : judge_round_trip(c, context, verdict);
    case Kind::assign:
      return judge_assign(c, context, verdict);
    case Kind::reject:
      return c.implementation ? judge_provider_reject(c, context, verdict)
                              : judge_reject(c, context, verdict);
    case Kind::size:
      return judge_size(c, context, verdict);
    case Kind::numerics:
      return judge_numerics(c, context, verdict);
    case Kind::determinism:
      return judge_determinism(c, context, verdict);
    case Kind::latency:
      return judge_latency(c, context, verdict);
    case Kind::values:
      break;
  }
  throw std::logic_error("no case has this kind");
}

}  // namespace

void judge_guarded(Verdict& verdict, const std::function<void()>& judging) {
  const auto end = [&](Status status, const std::string& reason) {
    verdict.status = status;
    verdict.reason = reason;
  };
  try {
    judging();
  } catch (const Refused& refused) {
    end(Status::fail, std::string("refused: ") + refused.what());
  } catch (const OverrunFault& fault) {
    end(Status::fail, fault.what());
    verdict.findings.insert(verdict.findings.end(), {{Caveat::harm, ""}, {Caveat::overrun, ""}});
  } catch (const HarmFault& fault) {
    end(Status::fail, fault.what());
    verdict.findings.push_back({Caveat::harm, ""});
  } catch (const ProviderFault& fault) {
    end(Status::fail, fault.what());
  } catch (const IoError& error) {
    end(error.error_number() == ENOSPC || error.error_number() == ENOMEM ? Status::resource
                                                                         : Status::internal,
        error.what());
  } catch (const std::bad_alloc&) {
    end(Status::resource, "out of memory");
  } catch (const std::exception& error) {
    end(Status::internal, error.what());
  }
}

Verdict judge(const Case& c, const JudgeContext& context) {
  const auto began = std::chrono::steady_clock::now();
  Verdict verdict;
  verdict.case_id = c.id;
  verdict.provider = c.provider();
  verdict.variant = c.variant();
  verdict.input_kind = input_kind_of_verdict(c);
  verdict.problem = problem_of_verdict(c, told_seed(context));
  if (c.id.op == Op::file && !c.judges_file()) verdict.asked = asked_of_file(c);
  // A variant that cannot run here is never replaced by another.
  const std::string refusal =
      c.implementation == nullptr ? std::string() : c.implementation->machine_refusal();
  if (!refusal.empty()) {
    verdict.status = Status::not_supported;
    verdict.reason = refusal;
  } else {
    JudgeContext allowing = context;
    if (c.golden() != nullptr)
      allowing.open.allow.insert(allowing.open.allow.end(), c.golden()->allow.begin(),
                                 c.golden()->allow.end());
    judge_guarded(verdict, [&] { dispatch(c, allowing, verdict); });
    if (verdict.input_kind == input_kind_name(InputKind::hostile) && c.promised != InputKind::hostile)
      verdict.findings.push_back({Caveat::hostile_input, ""});
    conclude(verdict, context.purpose);
    if (verdict.status != Status::pass) verdict.output_hash.clear();
  }
  add_evidence(c, verdict);
  if (verdict.status != Status::pass && verdict.reason.empty()) {
    verdict.reason = "status " + std::string(status_name(verdict.status)) + " without a reason";
    verdict.status = Status::internal;
  }
  if (verdict.status == Status::fail && !verdict.problem.empty())
    verdict.reason += " (" + verdict.problem + ")";
  verdict.rerun = rerun_line(context, c.full_id());
  verdict.wall_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
  return verdict;
}

}  // namespace qcts
