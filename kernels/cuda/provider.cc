// SPDX-License-Identifier: BSD-3-Clause
// Provider "cuda": the device kernels of kernels.inc, compiled by nvcc. They refuse problems on the host.
#include <array>
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
const qcts_kernel* const kRows[] = {
#include "kernels/kernels.inc"
};

// The rows with a claim that holds for all of them: they do nothing but launch kernels with arguments that
// follow from the problem's addresses and sizes.
struct Table {
  std::array<qcts_kernel, std::size(kRows)> rows;
  std::array<const qcts_kernel*, std::size(kRows)> kernels;
  qcts_provider provider{.struct_size = sizeof(qcts_provider),
                         .abi_version = QCTS_ABI_VERSION,
                         .name = "cuda",
                         .version = "nvcc",
                         .url = nullptr,
                         .choices = QCTS_CHOICE_HOSTILE_INPUTS,
                         .n_kernels = std::size(kRows),
                         .claims = 0,
                         .kernels = kernels.data(),
                         .load_save = nullptr,
                         .run_program = nullptr,
                         .profile = nullptr};
  Table() {
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = *kRows[i];
      rows[i].claims |= QCTS_CLAIM_CAPTURABLE;
      kernels[i] = &rows[i];
    }
  }
};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  static const Table table;
  return host_abi_version >= QCTS_ABI_VERSION ? &table.provider : nullptr;
}
