// SPDX-License-Identifier: BSD-3-Clause
// `qcts block`: times the decoder block of suites/judge/latency/block.h for several schemes and values of m.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "suites/judge/latency/block.h"

namespace qcts {

struct BlockRequest {
  std::vector<std::string> schemes = {"int8_row", "int4_tinygemm_g128"};
  std::vector<int64_t> m = {1, 512};
  // budget_s is the time for each scheme and m.
  // The copies of each dtype's layers take 1 GiB, which is more than any cache.
  BlockSettings settings{.set_bytes = uint64_t{1} << 30};
  bool gate_latency = false;
};

struct BlockRow {
  std::string scheme, quantized_by;
  uint64_t file_bytes = 0;
  bool reloaded_equal = false;
  BlockTimes times;
  // fail if the loaded planes differ. Otherwise the result of the claims if latency gates, and pass if not.
  Status status = Status::internal;
};

// Runs the benchmark. `registry` has the kernels and `baseline` has a dense linear (Peers::dense).
// The files are written to `folder` and removed.
// Throws std::runtime_error for a scheme without a kernel or a file format, and for a wrong answer.
std::vector<BlockRow> run_block(const BlockRequest& request, const Registry& registry,
                                const Registry& baseline, const std::filesystem::path& folder,
                                const std::function<void(const std::string&)>& progress);

// Returns the worst of the rows: failed, inconclusive or conformant.
Outcome block_outcome(const std::vector<BlockRow>& rows);

}  // namespace qcts
