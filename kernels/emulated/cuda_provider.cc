// SPDX-License-Identifier: BSD-3-Clause
// Provider "cudaemu": runs the device kernels of kernels.inc in the executor, on host memory or on the fake
// device of kernels/fakecuda.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "kernels/emulated/simt_checks.h"
#include "kernels/emulated/simt_rows.h"
#include "kernels/families/entry.h"
#include "kernels/machine/machine.h"

namespace qcts {

// Replaces machine.cc in this library, because the executor has every feature.
const char* missing_feature(const char*) { return nullptr; }
const char* misplaced(const char* variant, const qcts_problem& problem) {
  return simt::executor_refusal(variant, problem);
}

}  // namespace qcts

namespace {

namespace simt = qcts::simt;

// True in the library for tests, which also checks for races and counts sectors (simt_checks.h).
#if defined(QCTS_CHECKED)
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif

struct Row {
  const qcts_kernel& source;
  qcts_kernel (*executed)(const char* description);
};
#define QCTS_DEVICE_KERNEL(op, scheme, variant) \
  {qcts_kernel_##op##_##scheme##_##variant, simt::executed_row<qcts_kernel_##op##_##scheme##_##variant>},
const Row kRows[] = {
#include "kernels/kernels.inc"
};
constexpr size_t kCount = std::size(kRows);

struct Tables {
  std::array<std::string, kCount> descriptions;
  std::array<qcts_kernel, kCount> kernels = {};
  std::array<const qcts_kernel*, kCount> pointers = {};
  qcts_provider provider = {};

  Tables() {
    if (kChecked) simt::check_rows();
    for (size_t i = 0; i < kCount; ++i) {
      descriptions[i] = std::string("emulated GPU: ") + kRows[i].source.description;
      kernels[i] = kRows[i].executed(descriptions[i].c_str());
      pointers[i] = &kernels[i];
    }
    provider.struct_size = sizeof provider;
    provider.abi_version = QCTS_ABI_VERSION;
    provider.name = kChecked ? "cudachecked" : "cudaemu";
    provider.version = "executor";
    provider.choices = QCTS_CHOICE_HOSTILE_INPUTS;
    provider.n_kernels = static_cast<uint32_t>(kCount);
    provider.kernels = pointers.data();
  }
};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  static const Tables tables;
  return host_abi_version >= QCTS_ABI_VERSION ? &tables.provider : nullptr;
}

#if defined(QCTS_CHECKED)
// Returns the memory accesses of the last run, in the order of simt::AccessCounts. They are 0 unless
// QCTS_COUNT_ACCESSES is set.
extern "C" QCTS_EXPORT void qcts_cudachecked_counts(uint64_t counts[6]) {
  const simt::AccessCounts of = simt::access_counts();
  const uint64_t values[] = {of.sectors_read,    of.ideal_sectors_read,
                             of.sectors_written, of.ideal_sectors_written,
                             of.turns,           of.ideal_turns};
  std::copy(std::begin(values), std::end(values), counts);
}
#endif
