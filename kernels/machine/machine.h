// SPDX-License-Identifier: BSD-3-Clause
// What this processor can do, asked at run time. QCTS_CPU_MASK=avx2,fma in the environment hides everything
// but the named features (and what they imply), so that a path can be tested on a newer machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/machine/weight_reading.h"

namespace qcts {

struct Machine {
  std::string cpu_model;    // "AMD EPYC ..."
  uint32_t cpu_family = 0;  // of CPUID leaf 1, the extended one included: 25 is Zen 3 and 4, 26 Zen 5
  std::vector<std::string> features;  // of: sse4_2 fma f16c avx2 avxvnni avx512f avx512bw avx512dq avx512vl
                                      // avx512vnni avx512bf16 avx512vbmi avx512fp16, and where the operating
                                      // system lends this process the tiles amx_tile amx_int8 amx_bf16
  int logical_cpus = 1;
  uint64_t l2_bytes = 0, l3_bytes = 0;
  WeightReading weight_reading{};  // QCTS_WEIGHT_READING in the environment, else weight_reading_of
  bool has(const char* feature) const;
};

const Machine& machine();

// Of AMD's processors up to Zen 4 those with AVX-512 follow, others read side by side; the rest of the world
// prefetches. What was measured: weight_reading.h. `vendor`: the twelve letters of CPUID leaf 0.
WeightReading weight_reading_of(std::string_view vendor, uint32_t cpu_family, bool has_avx512f);
const char* name_of(WeightReading reading);
// Throws std::runtime_error for a name that is none.
WeightReading weight_reading_named(std::string_view name);

// Those of `features` that the comma-separated names in `mask` keep: the named ones and what they imply.
std::vector<std::string> masked_features(const std::vector<std::string>& features, std::string_view mask);

// Why a variant cannot run here ("needs avx512vnni"); empty when it can. Unknown variants cannot. "aten" can:
// its library dispatches.
std::string variant_refusal(const char* variant);
// The same without an allocation: NULL when it can.
const char* missing_feature(const char* variant);

}  // namespace qcts
