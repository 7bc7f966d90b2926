// SPDX-License-Identifier: BSD-3-Clause
// The only way to call a provider's functions.
// Every call saves the floating-point control state, checks it afterwards and restores it.
// The state is rounding mode, exception masks, flush to zero, and denormals are zero.
// A changed state would change the answers of all later cases in the process.
// Sticky exception flags may change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "kernels/registry.h"

namespace qcts {

// Reports that the provider broke the contract of qcts_kernel.h. judge() turns this into a fail.
class ProviderFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reports that run() or prepare() returned QCTS_FAILED.
class FailedFault : public ProviderFault {
 public:
  using ProviderFault::ProviderFault;
};

// Reports that the provider did what could damage its host: it changed the floating-point control state,
// threw across the C ABI or wrote out of bounds. No input excuses it.
class HarmFault : public ProviderFault {
 public:
  using ProviderFault::ProviderFault;
};

// Reports that the provider wrote out of bounds.
// The write may have damaged anything, so this process must not judge more cases.
class OverrunFault : public HarmFault {
 public:
  using HarmFault::HarmFault;
};

// Returns MXCSR without its sticky flags on x86, or 0 on other machines.
uint32_t float_control();
void set_float_control(uint32_t control);
// Returns "MXCSR 0x1f80 -> 0x9fc0 (flush to zero, denormals are zero)".
// Returns an empty string if the states are equal.
std::string float_control_change(uint32_t before, uint32_t after);

struct Support {
  qcts_status status = QCTS_OK;
  std::string reason;  // set unless status is QCTS_OK
};

// These functions throw HarmFault if the control state changed or if the call threw.
// ProviderFault is thrown if the answer violates the ABI (an unknown status, a reason without NUL).
Support provider_supports(const qcts_kernel& kernel, const qcts_problem& problem);
uint64_t provider_workspace_bytes(const qcts_kernel& kernel,
                                  const qcts_problem& problem);  // returns 0 if the kernel has no workspace
uint64_t provider_prepared_bytes(const qcts_kernel& kernel,
                                 const qcts_problem& problem);  // returns 0 if run reads the planes
qcts_status provider_prepare(const qcts_kernel& kernel, const qcts_problem& problem, void* prepared);
// `provider` must have the function (see runs_programs()). Status and reason are as in supports().
Support provider_load_save(const qcts_provider& provider, const std::string& input,
                           const std::string& output);
Support provider_run_program(const qcts_provider& provider, const qcts_program_call& call);
qcts_status provider_run(const qcts_kernel& kernel, const qcts_problem& problem);
// Returns ": " and the reason that the kernel gives for its last QCTS_FAILED; empty if it gives none.
std::string provider_failure(const qcts_kernel& kernel);
// Support::reason is set unless the status is QCTS_OK.
Support provider_load_save(const Implementation& provider, const std::filesystem::path& input,
                           const std::filesystem::path& output);

}  // namespace qcts
