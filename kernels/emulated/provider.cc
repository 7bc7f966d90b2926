// SPDX-License-Identifier: BSD-3-Clause
// Provider "emulated": the kernels of kernels.inc that need more than AVX2, compiled against SIMDe and
// tiles.h.
#include <string>
#include <vector>

#include "kernels/families/entry.h"
#include "kernels/machine/machine.h"
#include "kernels/machine/weight_reading.h"

namespace qcts {

// Replaces machine.cc in this library: emulation needs no more than AVX2.
const char* missing_feature(const char*) {
  const bool able =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  return able ? nullptr : "needs avx2, fma and f16c to emulate newer instructions";
}
const char* misplaced(const char*, const qcts_problem& problem) {
  return problem.device == 0 ? nullptr : "runs on the host only";
}
WeightReading weight_reading() { return WeightReading::side_by_side; }

}  // namespace qcts

namespace {

#define QCTS_EMULATE_scalar(op, scheme)
#define QCTS_EMULATE_avx2(op, scheme)
#define QCTS_EMULATE_avxvnni(op, scheme) &qcts_kernel_##op##_##scheme##_avxvnni,
#define QCTS_EMULATE_avx512(op, scheme) &qcts_kernel_##op##_##scheme##_avx512,
#define QCTS_EMULATE_avx512vnni(op, scheme) &qcts_kernel_##op##_##scheme##_avx512vnni,
#define QCTS_EMULATE_avx512bf16(op, scheme) &qcts_kernel_##op##_##scheme##_avx512bf16,
#define QCTS_EMULATE_avx512vbmi(op, scheme) &qcts_kernel_##op##_##scheme##_avx512vbmi,
#define QCTS_EMULATE_amx(op, scheme) &qcts_kernel_##op##_##scheme##_amx,
#define QCTS_KERNEL(op, scheme, variant) QCTS_EMULATE_##variant(op, scheme)
const qcts_kernel* const kSources[] = {
#include "kernels/kernels.inc"
};

struct Tables {
  std::vector<std::string> descriptions;
  std::vector<qcts_kernel> kernels;
  std::vector<const qcts_kernel*> pointers;
  qcts_provider provider = {};

  Tables() {
    descriptions.reserve(std::size(kSources));
    kernels.reserve(std::size(kSources));
    for (const qcts_kernel* source : kSources) {
      descriptions.push_back(std::string("emulated instruction set: ") + source->description);
      kernels.push_back(*source);
      kernels.back().claims |= QCTS_CLAIM_EMULATED;
      kernels.back().description = descriptions.back().c_str();
      pointers.push_back(&kernels.back());
    }
    provider.struct_size = sizeof provider;
    provider.abi_version = QCTS_ABI_VERSION;
    provider.name = "emulated";
    provider.version = "SIMDe";
    provider.choices = QCTS_CHOICE_HOSTILE_INPUTS;
    provider.n_kernels = static_cast<uint32_t>(pointers.size());
    provider.kernels = pointers.data();
  }
};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  static const Tables tables;
  return host_abi_version >= QCTS_ABI_VERSION ? &tables.provider : nullptr;
}
