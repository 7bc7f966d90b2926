// SPDX-License-Identifier: BSD-3-Clause
#include "suites/comparison/digests.h"

#include <algorithm>
#include <functional>
#include <map>

#include "suites/base/run_error.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kHopperCapability = 90;

const Json* device_of(const RunHead& head) {
  const auto found = head.environment.find("device");
  return found != head.environment.end() && found->is_object() ? &*found : nullptr;
}

bool adds_as_hopper(const RunHead& head, const std::string& variant) {
  if (variant == "sm90a") return true;
  const Json* device = device_of(head);
  return device != nullptr && device->value("capability", uint64_t{0}) >= kHopperCapability;
}

std::string key_of(const Verdict& verdict) { return verdict.case_id.text() + ", " + verdict.variant; }

bool has_digest(const Verdict& verdict) {
  return verdict.status == Status::pass && !verdict.output_hash.empty();
}

template <class Field>
void require_same(const char* name, const Field& there, const Field& here) {
  if (there != here)
    throw UsageError(std::string("digests of different runs: ") + name + " is " + Json(there).dump() +
                     " on the device, and " + Json(here).dump() + " in the executor");
}

void require_comparable(const RunHead& device, const RunHead& executor) {
  require_same("suite_commit", device.suite_commit, executor.suite_commit);
  require_same("seed", device.seed, executor.seed);
  require_same("seed_sha256", device.seed_sha256, executor.seed_sha256);
  require_same("fixtures_sha256", device.fixtures_sha256, executor.fixtures_sha256);
}

RunRecord record_in(const fs::path& run) {
  const fs::path file = record_of(run);
  if (!fs::is_regular_file(file)) throw UsageError(run.string() + ": there is no record of a run");
  try {
    return read_run_record(file);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

uint64_t Digests::differing() const {
  return static_cast<uint64_t>(std::ranges::count_if(cases, std::not_fn(&ComparedDigest::is_equal)));
}

std::string Digests::text() const {
  const uint64_t differ = differing();
  std::string text = "digests: " + std::to_string(cases.size() - differ) + " equal, " +
                     std::to_string(differ) + (differ == 1 ? " differs" : " differ");
  const auto first = std::ranges::find_if_not(cases, &ComparedDigest::is_equal);
  if (first != cases.end())
    text += ", first " + first->id + ": " + first->device + " on the device, " + first->executor +
            " in the executor";
  if (other_sums > 0)
    text += "; " + std::to_string(other_sums) + " of linear not compared: sums of another architecture";
  return text;
}

Digests compare_digests(const RunRecord& device, const RunRecord& executor) {
  require_comparable(device.head, executor.head);
  std::map<std::string, const Verdict*> executed;
  for (const Verdict& verdict : executor.verdicts)
    if (has_digest(verdict)) executed[key_of(verdict)] = &verdict;
  Digests digests;
  for (const Verdict& verdict : device.verdicts) {
    const auto found = has_digest(verdict) ? executed.find(key_of(verdict)) : executed.end();
    if (found == executed.end()) continue;
    const std::string& other = found->second->output_hash;
    if (verdict.case_id.op == Op::linear &&
        adds_as_hopper(device.head, verdict.variant) != adds_as_hopper(executor.head, verdict.variant))
      ++digests.other_sums;
    else
      digests.cases.push_back({verdict.case_id.op, verdict.case_id.scheme, verdict.variant, key_of(verdict),
                               verdict.output_hash, other});
  }
  return digests;
}

Digests compare_digests(const fs::path& device, const fs::path& executor) {
  const RunRecord on_device = record_in(device);
  if (device_of(on_device.head) == nullptr)
    throw UsageError(device.string() + ": it was not judged on a device");
  const Digests digests = compare_digests(on_device, record_in(executor));
  if (digests.cases.empty())
    throw RunError(Outcome::nothing_proved, "no digest could be compared: " + device.string() + " and " +
                                                executor.string() +
                                                " have no case with an output_hash in common");
  return digests;
}

}  // namespace qcts
