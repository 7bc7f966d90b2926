// SPDX-License-Identifier: BSD-3-Clause
// All that a judge gets in addition to the case.
#pragma once

#include "reference/dialects/checkpoint.h"
#include "suites/judge/context/judge_settings.h"
#include "suites/timing/busy_threads.h"
#include "suites/timing/roof.h"

namespace qcts {

class CoverageLog;
class PlayedProfiles;
class Registry;
class TestVectorCache;

struct JudgeContext : JudgeSettings {
  Seconds spent = nullptr;                  // clock for a latency case's busy threads; null: the kernel's
  Stopwatch stopwatch = {};                 // for latency cases
  OpenOptions open = {};                    // options with which round_trip, assign and size open the file
  const Registry* dense_peer = nullptr;     // latency: registry with the dense baseline; may be null
  const Registry* torch_peer = nullptr;     // latency: registry with LibTorch's kernels; may be null
  const Registry* device_clock = nullptr;   // latency on a device: the clock library's kernels; may be null
  std::string no_device_clock = {};         // why there is none
  TestVectorCache* test_vectors = nullptr;  // numerics, determinism: the last test vector; may be null
  const PlayedProfiles* played = nullptr;   // of the provider; null: the schemes' own recipes
  CoverageLog* coverage = nullptr;          // numerics: records every input that was judged; may be null
};

}  // namespace qcts
