// SPDX-License-Identifier: BSD-3-Clause
// Reads the shard from the environment variables of a cluster or CI engine, for runs without --shard.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace qcts {

struct EnvironmentShard {
  uint32_t shard = 1, shards = 1;  // 1-based
  std::string engine;              // "Slurm array"
  std::string status_file;         // file to touch, as Bazel and GoogleTest require; may be empty
};

using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
// Returns nullopt if the variable is unset or empty.
std::optional<std::string> environment_variable(const std::string& name);

// Returns nullopt if no engine sets a shard.
// Throws std::runtime_error if a variable is not a number or an index is out of range.
// Throws std::runtime_error if the number of shards is missing or two engines disagree. The variables are
//   QCTS_SHARD_INDEX (from 0), QCTS_SHARDS           qcts itself
//   SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP         Slurm, sbatch(1) "OUTPUT ENVIRONMENT VARIABLES"
//   JOB_COMPLETION_INDEX (from 0), with QCTS_SHARDS  Kubernetes, Job with completionMode Indexed
//   CI_NODE_INDEX (from 1), CI_NODE_TOTAL            GitLab, "parallel"
//   TEST_SHARD_INDEX (from 0), TEST_TOTAL_SHARDS, _STATUS_FILE    Bazel, test encyclopedia
//   GTEST_SHARD_INDEX (from 0), GTEST_TOTAL_SHARDS, _STATUS_FILE  GoogleTest, advanced guide
std::optional<EnvironmentShard> shard_from_environment(const Lookup& lookup = environment_variable);

}  // namespace qcts
