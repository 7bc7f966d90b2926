// SPDX-License-Identifier: BSD-3-Clause
// Times the linear layers of one decoder block of Llama-3.1-8B.
// Follows the benchmark in the transformers documentation.
// Seeded weights are quantized and timed, then saved, reloaded and timed again.
// The same layers are timed in bfloat16 too.
// Covers linear layers only: no attention, norms or embeddings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "suites/timing/stats.h"

namespace qcts {

struct BlockRequest {
  std::vector<std::string> schemes = {"int8_row", "int4_tinygemm_g128"};
  std::vector<int64_t> m = {1, 512};
  uint64_t set_bytes = uint64_t{1} << 30;  // minimum size of the rotating copies of each dtype's layers
  double budget_s = 20;                    // time for each (scheme, m)
  int64_t shrink = 1;                      // divides every dimension; used by tests
  uint32_t threads = 1;
  uint64_t seed = 1;
};

// The result for one (scheme, m). Times are microseconds for one pass through the seven layers.
struct BlockRow {
  // Kernels that were used: "builtin_avx2". `quantize` is "reference" if there is no kernel.
  std::string scheme, linear, quantize, dense;
  int64_t m = 1;
  uint64_t dense_bytes = 0, quantized_bytes = 0, file_bytes = 0;  // sizes of one block
  size_t dense_copies = 0, quantized_copies = 0;
  Interval before_us, after_us, dense_us;  // times before saving, after reloading, and of the dense layers
  Interval speedup_before, speedup_after;  // time of dense over quantized
  Interval before_over_after;              // 1 within noise
  bool reloaded_equal = false;             // true if every plane is bitwise equal
};

// Runs the benchmark. `registry` has the kernels and `baseline` has a dense linear (Baseline::find).
// The file is written to `folder` and removed.
// Every layer is verified at 256 sampled outputs before it is timed.
// Throws std::runtime_error for a scheme without a kernel or a file format, and for a wrong answer.
std::vector<BlockRow> run_block(const BlockRequest& request, const Registry& registry,
                                const Registry& baseline, const std::filesystem::path& folder,
                                const std::function<void(const std::string&)>& progress);

}  // namespace qcts
