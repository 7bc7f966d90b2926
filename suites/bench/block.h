// SPDX-License-Identifier: BSD-3-Clause
// The linear layers of one decoder block of Llama-3.1-8B, after the benchmark in the documentation of
// transformers: weights from a seed, quantized, timed, saved, loaded back and timed again, beside the same
// layers in bfloat16. Linear layers only: no attention, no norms, no embeddings.
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
  uint64_t set_bytes = uint64_t{1} << 30;  // copies of each dtype's layers, at least, that take turns
  double budget_s = 20;                    // of each (scheme, m)
  int64_t shrink = 1;                      // divides every dimension: for tests
  uint32_t threads = 1;
  uint64_t seed = 1;
};

// One (scheme, m). us: one pass through the seven layers.
struct BlockRow {
  std::string scheme, linear, quantize,
      dense;  // who did it: "builtin_avx2"; quantize "reference" where no kernel does
  int64_t m = 1;
  uint64_t dense_bytes = 0, quantized_bytes = 0, file_bytes = 0;  // of one block
  size_t dense_copies = 0, quantized_copies = 0;
  Interval before_us, after_us, dense_us;  // before saving, after reloading
  Interval speedup_before, speedup_after;  // dense over quantized
  Interval before_over_after;              // 1 within noise
  bool reloaded_equal = false;             // every plane bitwise
};

// `registry` has the kernels, `baseline` a dense linear (Baseline::find); `folder` gets the file and loses
// it. Every layer is verified at 256 sampled outputs before it is timed. Throws std::runtime_error: no kernel
// for a scheme, a wrong answer, a scheme that no file holds.
std::vector<BlockRow> run_block(const BlockRequest& request, const Registry& registry,
                                const Registry& baseline, const std::filesystem::path& folder,
                                const std::function<void(const std::string&)>& progress);

}  // namespace qcts
