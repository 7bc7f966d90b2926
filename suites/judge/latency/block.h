// SPDX-License-Identifier: BSD-3-Clause
// Times the linear layers of one decoder block of Llama-3.1-8B, after the benchmark in the transformers
// documentation. It times them in bfloat16, quantized, and quantized after saving and loading. Seeded weights
// are quantized and saved. The loaded layers have the same bytes as the quantized ones, at other addresses.
// Both are timed in the same rounds as the dense ones. Only linear layers are timed: no attention, norms or
// embeddings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "suites/judge/judge.h"
#include "suites/timing/stats.h"

namespace qcts {

struct BlockSettings {
  // Minimum size of the rotating copies of each dtype's layers. 0: as many copies as it takes to leave the
  // caches (cold_copies).
  uint64_t set_bytes = 0;
  double budget_s = 20;
  int64_t shrink = 1;  // divides every dimension
  uint32_t threads = 1;
  uint64_t seed = 1;
  Stopwatch stopwatch = {};
  Seconds spent = nullptr;  // counts the threads that the kernel keeps busy; null: its own CPU time
};

// The planes of the seven layers, as quantized and as read from the file that they were saved to.
struct BlockPlanes {
  std::vector<Planes> made, loaded;
  std::string quantized_by;  // "builtin_avx2", or "reference"
  uint64_t file_bytes = 0;
  bool is_equal = false;  // every plane is bitwise equal
};

// Returns true if the block can be quantized to this scheme and saved. A torchao class must be able to hold
// it.
bool has_block_file(const Scheme& scheme);

// Quantizes with the first kernel of `registry` that runs here. Quantizes with the reference if `registry` is
// null or has no such kernel. The file is written to `folder` and removed. Throws Refused and
// std::runtime_error.
BlockPlanes save_and_load_block(const BlockSettings& settings, const Scheme& scheme, const Registry* registry,
                                const std::filesystem::path& folder);

// Result for one (scheme, kernel, m). Times are microseconds for one pass through the seven layers.
struct BlockTimes {
  int64_t m = 1;
  std::string linear, dense;                      // kernels used: "builtin_avx2"
  uint64_t dense_bytes = 0, quantized_bytes = 0;  // of one block
  size_t dense_copies = 0, quantized_copies = 0;
  Interval before_us, after_us, dense_us;  // before saving, after loading
  Interval speedup_before, speedup_after;  // dense over quantized
  Interval before_over_after;              // 1, within noise
  Interval itself;                         // A/A: before against itself
  double canary_drift = 1;                 // the machine's speed after the measurement over that before
  double busy_threads = 0;                 // while the kernel runs
  std::vector<double> samples_us;          // before saving, by round
  std::string doubt;                       // why the times cannot be trusted; empty: they can
  // The claims are: faster than dense before saving and after loading (required of decoding), and as fast
  // after loading as before.
  std::vector<SpeedClaim> claims;
};

// Requires block_support(). Every layer is verified at 256 sampled outputs before it is timed and once more
// afterwards. Throws ProviderFault for a wrong answer and for more threads than given. Throws
// std::runtime_error if the dense block is wrong.
BlockTimes time_block(const BlockSettings& settings, const Scheme& scheme, const BlockPlanes& planes,
                      const Implementation& linear, const Implementation& dense, int64_t m);

// Says whether the kernel takes all layers of the block, and whether they can be timed in this process.
Support block_support(const BlockSettings& settings, const Scheme& scheme, const BlockPlanes& planes,
                      const Implementation& linear, int64_t m);

// Judges a latency case of a block.
void judge_block(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
