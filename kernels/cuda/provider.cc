// SPDX-License-Identifier: BSD-3-Clause
// Provider "cuda": the device kernels of kernels.inc, compiled by nvcc. They refuse problems on the host.
#include <iterator>

#include "kernels/cuda/capability.h"
#include "kernels/families/entry.h"
#include "kernels/machine/machine.h"

namespace qcts {

// Replaces machine.cc in this library.
const char* missing_feature(const char*) { return nullptr; }
const char* misplaced(const char* variant, const qcts_problem& problem) {
  return problem.device == 0 ? "runs on a CUDA device only" : capability_refusal(variant, problem);
}

}  // namespace qcts

namespace {

#define QCTS_DEVICE_KERNEL(op, scheme, variant) &qcts_kernel_##op##_##scheme##_##variant,
const qcts_kernel* const kKernels[] = {
#include "kernels/kernels.inc"
};

constexpr qcts_provider kProvider = {.struct_size = sizeof(qcts_provider),
                                     .abi_version = QCTS_ABI_VERSION,
                                     .name = "cuda",
                                     .version = "nvcc",
                                     .url = nullptr,
                                     .choices = QCTS_CHOICE_HOSTILE_INPUTS,
                                     .n_kernels = std::size(kKernels),
                                     .claims = 0,
                                     .kernels = kKernels,
                                     .load_save = nullptr,
                                     .run_program = nullptr};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : nullptr;
}
