// SPDX-License-Identifier: BSD-3-Clause
// Calls functions of a provider that is loaded in this process.
// Every call saves the floating-point control state, checks it afterwards and restores it.
// The state is rounding mode, exception masks, flush to zero, and denormals are zero.
// A changed state would change the answers of all later calls in the process.
// Sticky exception flags may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/abi/qcts_kernel.h"

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
// The write may have damaged anything, so the provider's process must not compute more cases.
class OverrunFault : public HarmFault {
 public:
  using HarmFault::HarmFault;
};

// The process that computes for the judge died, or said what it was not asked. It costs the case.
// This is not a std::exception: nothing but the worker's loop may handle it.
struct HostFailure {
  std::string reason;  // "its worker died: SIGABRT (Aborted)"
  uint64_t peak_resident_bytes = 0;
};

// Returns MXCSR without its sticky flags and, in the upper half, the x87 unit's control word on x86, or 0 on
// other machines.
uint32_t float_control();

// Flushes subnormal results and operands of this thread to zero, as a caller may, for its own lifetime.
class FlushedSubnormals {
 public:
  FlushedSubnormals();
  ~FlushedSubnormals();
  FlushedSubnormals(const FlushedSubnormals&) = delete;
  FlushedSubnormals& operator=(const FlushedSubnormals&) = delete;

 private:
  const uint32_t before_;
};

void set_float_control(uint32_t control);
// Returns "MXCSR 0x1f80 -> 0x9fc0 (flush to zero, denormals are zero)", or the same of the x87 control word.
// Returns an empty string if the states are equal.
std::string float_control_change(uint32_t before, uint32_t after);

struct Support {
  qcts_status status = QCTS_OK;
  std::string reason;  // set unless status is QCTS_OK
};

// Each function calls `call`, which stands for `function`() of `who`, and returns its answer.
// HarmFault is thrown if the control state changed or if the call threw.
// ProviderFault is thrown if the answer violates the ABI (an unknown status, a reason without NUL).
// A ProviderFault that `call` throws passes through.
Support guarded_support(const std::string& who, const char* function,
                        const std::function<qcts_status(char* why, size_t why_size)>& call);
qcts_status guarded_status(const std::string& who, const char* function,
                           const std::function<qcts_status()>& call);
uint64_t guarded_bytes(const std::string& who, const char* function, const std::function<uint64_t()>& call);
// Returns ": " and the reason that the kernel gives for its last QCTS_FAILED; empty if it gives none.
std::string guarded_failure(const qcts_kernel& kernel);

}  // namespace qcts
