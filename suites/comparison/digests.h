// SPDX-License-Identifier: BSD-3-Clause
// Compares the hashes of a device's outputs with those of the executor, which computes the same kernels on
// the host (provider cudaemu).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "suites/record/run_record.h"

namespace qcts {

struct ComparedDigest {
  Op op = Op::linear;
  std::string scheme, variant;
  std::string id;  // "numerics.linear/int8_row/a, sm80"
  std::string device, executor;

  // False is a fault of the ordering, of ptxas, or of the executor's model.
  bool is_equal() const { return device == executor; }
};

struct Digests {
  std::vector<ComparedDigest> cases;
  // Cases of linear that the executor added up as another architecture does.
  uint64_t other_sums = 0;

  uint64_t differing() const;
  // "digests: 120 equal, 1 differs, first ...".
  std::string text() const;
};

// Compares the cases that passed in both runs and have a hash in both, by case id and variant; the providers
// need not have one name. A linear is compared if both runs add up as the same architecture: that of the GPU,
// real or fake, or, without one, Hopper for variant sm90a and Ampere for the others.
// Throws UsageError, which names the field, for runs of another commit, seed or fixtures.
Digests compare_digests(const RunRecord& device, const RunRecord& executor);

// Reads both and compares them. Throws UsageError too if the first is not of a device, and
// RunError(nothing_proved) if no case can be compared.
Digests compare_digests(const std::filesystem::path& device, const std::filesystem::path& executor);

}  // namespace qcts
