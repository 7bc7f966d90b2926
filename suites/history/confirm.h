// SPDX-License-Identifier: BSD-3-Clause
// Implements `qcts confirm`: records of runs on a GPU become a ledger (suites/confirmed/ledger.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suites/comparison/digests.h"
#include "suites/confirmed/ledger.h"

namespace qcts {

struct ConfirmRequest {
  std::vector<std::filesystem::path> runs;  // folders of `qcts run --device cuda`, or their records
  // The same for provider cudaemu, whose outputs are compared with the GPU's; may be empty.
  std::vector<std::filesystem::path> executor_runs;
  std::filesystem::path library;  // the libqcts_cuda.so that was judged
  std::filesystem::path root;     // with the sources that it was built from
};

struct Confirmation {
  Ledger ledger;
  Digests digests;  // of all runs together; empty without runs of the executor
};

// Returns the ledger of the runs' GPU. Throws UsageError, which names the record, for one that is not
// evidence: not on a device, on the fake one, by a driver that the environment named, not isolated,
// unfinished, of an unknown or changed commit, of another library, or of another GPU or driver than the
// record before it. With runs of the executor, throws as compare_digests() does
// (suites/comparison/digests.h).
Confirmation confirmed(const ConfirmRequest& request);

}  // namespace qcts
