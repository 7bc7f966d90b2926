// SPDX-License-Identifier: BSD-3-Clause
// The answers of a kernel about a problem, before it computes.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/abi/qcts_kernel.h"
#include "suites/host/guarded_call.h"

namespace qcts {

struct KernelFacts {
  Support support;
  // The answer of supports() if every data pointer is NULL. The kernel is asked for this and for
  // prepared_bytes only if `support` accepts the problem.
  Support before_data;
  uint64_t workspace_bytes = 0;  // 0 if the kernel has no workspace
  uint64_t prepared_bytes = 0;   // 0 if run reads the planes
};

// Calls supports() of a kernel of this process. Throws as guarded_call.h says.
Support kernel_supports(const qcts_kernel& kernel, const qcts_problem& problem);

// Asks a kernel of this process, or one that `supports` stands for. Throws as guarded_call.h says.
KernelFacts ask_facts(const qcts_kernel& kernel, const qcts_problem& problem,
                      const std::function<Support(const qcts_problem&)>& supports);

}  // namespace qcts
