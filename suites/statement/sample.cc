// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/sample.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include <sodium.h>

#include "suites/base/paths.h"
#include "suites/run/device_choice.h"
#include "suites/run/run.h"
#include "suites/statement/verify.h"

namespace qcts {
namespace {

// Keeps the summary of a run off the terminal.
class Silence {
 public:
  Silence() : before_(std::cout.rdbuf(kept_.rdbuf())) {}
  ~Silence() { std::cout.rdbuf(before_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  std::ostringstream kept_;
  std::streambuf* const before_;
};

std::optional<int> device_of(const RunHead& head) {
  const nlohmann::ordered_json device = head.environment.value("device", nlohmann::ordered_json());
  if (!device.is_object()) return std::nullopt;
  return device.at("ordinal").get<int>();
}

}  // namespace

std::vector<std::string> drawn_sample(const Predicate& predicate, double percent) {
  if (::sodium_init() < 0) throw RunError(Outcome::infrastructure, "libsodium cannot be used");
  std::vector<std::string> ids;
  for (const StatedVerdict& row : predicate.verdicts) {
    const CaseId& id = row.verdict.case_id;
    const bool is_secret = is_drawn(id) && !predicate.head.seed_sha256.empty();
    if (id.kind != Kind::latency && !is_secret) ids.push_back(row.verdict.full_id());
  }
  const double share = std::ceil(static_cast<double>(ids.size()) * percent / 100);
  const size_t count = std::min(ids.size(), std::max(kMinSample, static_cast<size_t>(share)));
  for (size_t i = 0; i < count; ++i)
    std::swap(ids[i], ids[i + ::randombytes_uniform(static_cast<uint32_t>(ids.size() - i))]);
  ids.resize(count);
  return ids;
}

RunRecord judged_anew(const RunHead& head, const std::filesystem::path& provider,
                      const std::vector<std::string>& ids, unsigned jobs) {
  const ScratchFolder scratch;
  RunRequest request;
  request.plan = kCompletePlan;
  request.device = device_of(head);
  request.selection.filters = ids;
  if (request.device) request.selection = selection_for_device(request.selection, request.plan);
  request.providers = {std::filesystem::absolute(provider).string()};
  request.out = scratch.path();
  request.progress = false;
  request.memory_limit_bytes = head.memory_limit_bytes;
  request.seed = head.seed;
  request.threads = head.threads;
  request.jobs = jobs;
  {
    const Silence silence;
    run(request);
  }
  return read_run_record(record_of(scratch.path()));
}

}  // namespace qcts
