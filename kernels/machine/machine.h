// SPDX-License-Identifier: BSD-3-Clause
// Detects the features of this processor at run time.
// The environment variable QCTS_CPU_MASK=avx2,fma hides every feature except the named ones
// and those that they imply. So a newer machine can test an older path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/machine/weight_reading.h"

namespace qcts {

struct Machine {
  std::string cpu_model;    // "AMD EPYC ..."
  uint32_t cpu_family = 0;  // from CPUID leaf 1, with the extended family: 25 is Zen 3 and 4, 26 is Zen 5
  // Possible features: sse4_2 fma f16c avx2 avxvnni avx512f avx512bw
  // avx512dq avx512vl avx512vnni avx512bf16 avx512vbmi avx512fp16.
  // amx_tile, amx_int8 and amx_bf16 are added if the operating system grants the tiles to this process.
  std::vector<std::string> features;
  int logical_cpus = 1;
  uint64_t l2_bytes = 0, l3_bytes = 0;
  // from the environment variable QCTS_WEIGHT_READING, otherwise from weight_reading_of()
  WeightReading weight_reading{};
  bool has(const char* feature) const;
};

const Machine& machine();

// Returns `followed` for AMD processors up to Zen 4 with AVX-512, and `side_by_side` for those without.
// Returns `prefetched` for all other processors. weight_reading.h has the measurements.
// `vendor` is the string of twelve letters in CPUID leaf 0.
WeightReading weight_reading_of(std::string_view vendor, uint32_t cpu_family, bool has_avx512f);
const char* name_of(WeightReading reading);
// Throws std::runtime_error for an unknown name.
WeightReading weight_reading_named(std::string_view name);

// Returns the features that the comma-separated `mask` keeps: the named ones and those that they imply.
std::vector<std::string> masked_features(const std::vector<std::string>& features, std::string_view mask);

// Returns the reason why a variant cannot run here ("needs avx512vnni"), or an empty string if it can run.
// An unknown variant cannot run. "aten" can, because its library selects its own code.
std::string variant_refusal(const char* variant);
// Returns the missing feature, or NULL if the variant can run. Does not allocate.
const char* missing_feature(const char* variant);
// Returns why kernels of the variant cannot run where the problem is, on the host or on a device; NULL if
// they can. Does not allocate.
const char* misplaced(const char* variant, const qcts_problem& problem);

}  // namespace qcts
