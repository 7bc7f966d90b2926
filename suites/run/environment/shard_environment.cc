// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/environment/shard_environment.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>

namespace qcts {
namespace {

struct Engine {
  const char *name, *index, *first, *step, *total, *status_file;  // first and step: variables, or nullptr
  int64_t first_index;                                            // if `first` is unset
};

constexpr Engine kEngines[] = {
    {"qcts", "QCTS_SHARD_INDEX", nullptr, nullptr, "QCTS_SHARDS", nullptr, 0},
    {"Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP",
     "SLURM_ARRAY_TASK_COUNT", nullptr, 0},
    {"Kubernetes indexed job", "JOB_COMPLETION_INDEX", nullptr, nullptr, "QCTS_SHARDS", nullptr, 0},
    {"GitLab", "CI_NODE_INDEX", nullptr, nullptr, "CI_NODE_TOTAL", nullptr, 1},
    {"Bazel", "TEST_SHARD_INDEX", nullptr, nullptr, "TEST_TOTAL_SHARDS", "TEST_SHARD_STATUS_FILE", 0},
    {"GoogleTest", "GTEST_SHARD_INDEX", nullptr, nullptr, "GTEST_TOTAL_SHARDS", "GTEST_SHARD_STATUS_FILE", 0},
};

int64_t number_in(const Lookup& lookup, const char* name, std::optional<int64_t> otherwise = std::nullopt) {
  const std::optional<std::string> text = lookup(name);
  if (!text && otherwise) return *otherwise;
  int64_t value = 0;
  const char* end = text ? text->data() + text->size() : nullptr;
  if (text) {
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error == std::errc() && stop == end) return value;
  }
  throw std::runtime_error(std::string(name) + (text ? " is not a number: '" + *text + "'" : " is not set"));
}

std::optional<EnvironmentShard> shard_of(const Engine& engine, const Lookup& lookup) {
  if (!lookup(engine.index)) return std::nullopt;
  const std::string where = std::string(engine.name) + ": " + engine.index + " is set, but ";
  if (!lookup(engine.total))
    throw std::runtime_error(where + engine.total +
                             " is not: how many shards are there? (--shard 1/1 judges everything)");
  const int64_t first =
      engine.first ? number_in(lookup, engine.first, engine.first_index) : engine.first_index;
  const int64_t step = engine.step ? number_in(lookup, engine.step, 1) : 1;
  const int64_t index = number_in(lookup, engine.index), total = number_in(lookup, engine.total);
  constexpr int64_t kMost = 1'000'000;
  if (total < 1 || total > kMost || step < 1 || index < first || (index - first) % step != 0 ||
      (index - first) / step >= total)
    throw std::runtime_error(where + std::to_string(index) + " is not a shard of " + std::to_string(total) +
                             " that start at " + std::to_string(first));
  EnvironmentShard found;
  found.shard = static_cast<uint32_t>((index - first) / step + 1);
  found.shards = static_cast<uint32_t>(total);
  found.engine = engine.name;
  if (engine.status_file) found.status_file = lookup(engine.status_file).value_or("");
  return found;
}

// Refuses a total without an index, since each of several shards would then judge everything. GitLab sets a
// total of 1 for jobs that are not parallel.
void require_no_total(const Lookup& lookup) {
  for (const Engine& engine : kEngines)
    if (lookup(engine.total) && number_in(lookup, engine.total) != 1)
      throw std::runtime_error(std::string(engine.name) + ": " + engine.total + " is set, but " +
                               engine.index +
                               " is not: which shard is this? (--shard 1/1 judges everything)");
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<EnvironmentShard> shard_from_environment(const Lookup& lookup) {
  std::optional<EnvironmentShard> chosen;
  for (const Engine& engine : kEngines) {
    const std::optional<EnvironmentShard> found = shard_of(engine, lookup);
    if (!found) continue;
    if (chosen && (chosen->shard != found->shard || chosen->shards != found->shards))
      throw std::runtime_error(chosen->engine + " asks for shard " + std::to_string(chosen->shard) + "/" +
                               std::to_string(chosen->shards) + ", " + found->engine + " for " +
                               std::to_string(found->shard) + "/" + std::to_string(found->shards) +
                               ": say which with --shard");
    if (!chosen) chosen = found;
    if (chosen->status_file.empty()) chosen->status_file = found->status_file;
  }
  if (!chosen) require_no_total(lookup);
  return chosen;
}

}  // namespace qcts
