// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/first_answer.h"

#include <string>

#include "suites/providers/provider_call.h"

namespace qcts {

bool is_declined(const Support& support, Verdict& verdict) {
  if (support.status == QCTS_OK) return false;
  verdict.status = support.status == QCTS_UNSUPPORTED ? Status::not_supported : Status::fail;
  verdict.reason = (support.status == QCTS_INVALID  ? "supports() calls a valid problem invalid: "
                    : support.status == QCTS_FAILED ? "supports() failed: "
                                                    : "") +
                   support.reason;
  return true;
}

std::optional<KernelAnswer> first_answer(KernelRun& run, InputKind kind, Verdict& verdict) {
  try {
    return run.run(Poison::nan);
  } catch (const FailedFault& fault) {
    if (kind == InputKind::reachable) throw;
    verdict.status = Status::not_supported;
    verdict.reason =
        "refuses the values of a " + std::string(input_kind_name(kind)) + " input: " + fault.what();
    return std::nullopt;
  }
}

}  // namespace qcts
