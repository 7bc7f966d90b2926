// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/merge.h"

#include <algorithm>
#include <map>

#include "suites/base/paths.h"
#include "suites/run/recounted_report.h"
#include "suites/run/run.h"
#include "suites/run/run_report.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_merge(const std::string& why) { throw UsageError("cannot be merged: " + why); }

MergePart read_part(const fs::path& given) {
  const fs::path file = record_of(given);
  if (!fs::exists(file)) cannot_merge("there is no " + file.string() + " and no run.jsonl.gz");
  try {
    return {given.string(), read_run_record(file)};
  } catch (const std::runtime_error& error) {
    cannot_merge(error.what());
  }
}

std::string shard_text(const RunHead& head) {
  return std::to_string(head.shard) + "/" + std::to_string(head.shards);
}

void check_whole(const MergePart& part) {
  const size_t have = part.record.verdicts.size();
  if (part.record.truncated || have != part.record.head.cases)
    cannot_merge(part.name + " is unfinished: " + std::to_string(have) + " of " +
                 std::to_string(part.record.head.cases) + " cases of shard " + shard_text(part.record.head) +
                 " (qcts run --resume finishes it)");
}

// Requires every shard 1..n once.
void check_shards(const std::vector<MergePart>& parts) {
  std::map<uint32_t, const MergePart*> shards;
  for (const MergePart& part : parts) {
    const auto [place, fresh] = shards.emplace(part.record.head.shard, &part);
    if (!fresh)
      cannot_merge(place->second->name + " and " + part.name + " are both shard " +
                   shard_text(part.record.head));
  }
  std::string missing;
  const uint32_t total = parts.front().record.head.shards;
  for (uint32_t shard = 1; shard <= total; ++shard)
    if (!shards.contains(shard)) missing += (missing.empty() ? "" : ", ") + std::to_string(shard);
  if (!missing.empty()) cannot_merge("these of " + std::to_string(total) + " shards are missing: " + missing);
}

// Requires every case of the undivided run once. All shards hold the hash of its ids.
void check_cases(const std::vector<MergePart>& parts) {
  std::map<std::string, const MergePart*> judged;
  std::vector<std::string> ids;
  for (const MergePart& part : parts)
    for (const Verdict& verdict : part.record.verdicts) {
      const auto [place, fresh] = judged.emplace(verdict.full_id(), &part);
      if (!fresh)
        cannot_merge(verdict.full_id() + " is judged by " + place->second->name + " and by " + part.name);
      ids.push_back(verdict.full_id());
    }
  const RunHead& head = parts.front().record.head;
  if (ids.size() != head.all_cases)
    cannot_merge("together they judge " + std::to_string(ids.size()) + " of " +
                 std::to_string(head.all_cases) + " cases");
  if (ids_sha256(std::move(ids)) != head.cases_sha256)
    cannot_merge("together they judge cases other than the run's");
}

// Returns the head of the undivided run, with the first start time.
RunHead joined_head(const std::vector<MergePart>& parts) {
  RunHead head = parts.front().record.head;
  for (const MergePart& part : parts)
    head.started_utc = std::min(head.started_utc, part.record.head.started_utc);
  for (const MergePart& part : parts)
    if (part.record.head.program_sha256 != head.program_sha256) head.program_sha256.clear();
  head.shard = head.shards = 1;
  head.cases = head.all_cases;
  return head;
}

void check_installation(const RunHead& head, const std::vector<fs::path>& folders) {
  if (const std::string other = other_lists(head, folders); !other.empty())
    cannot_merge("the parts were not made by this installation: " + other +
                 (head.fixtures.empty() ? "" : " (give their --fixtures here too)"));
}

}  // namespace

void check_parts(const std::vector<MergePart>& parts) {
  if (parts.empty()) cannot_merge("no part was given");
  for (const MergePart& part : parts)
    if (const std::string other = difference(parts.front().record.head, part.record.head); !other.empty())
      cannot_merge(parts.front().name + " and " + part.name + " are from different runs: " + other);
  for (const MergePart& part : parts) check_whole(part);
  check_shards(parts);
  check_cases(parts);
}

Outcome merge(const MergeRequest& request) {
  std::vector<MergePart> parts;
  for (const fs::path& given : request.parts) parts.push_back(read_part(given));
  check_parts(parts);

  std::vector<fs::path> folders = {fixtures_folder()};
  folders.insert(folders.end(), request.fixtures.begin(), request.fixtures.end());
  RunHead head = joined_head(parts);
  head.arguments = request.arguments;
  check_installation(head, folders);

  fs::create_directories(request.out);
  for (const fs::path& given : request.parts)
    if (fs::equivalent(fs::is_directory(given) ? given : fs::absolute(given).parent_path(), request.out))
      cannot_merge(request.out.string() + " is one of the parts: --out needs another folder");
  start_reports(request.out);
  RunReport report = report_from(head, load_fixtures(folders));
  for (MergePart& part : parts)
    std::move(part.record.verdicts.begin(), part.record.verdicts.end(), std::back_inserter(report.verdicts));
  std::sort(report.verdicts.begin(), report.verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.full_id() < b.full_id(); });
  RunRecordWriter record;
  record.create(request.out / "run.jsonl", head);
  for (Verdict& verdict : report.verdicts) {
    record.add(verdict);
    apply_waivers(report.waivers, verdict);
    report.wall_s += verdict.wall_us / 1e6;
  }
  record.close();
  return write_report(report, request.out, {.print_json = request.json, .junit = request.junit});
}

}  // namespace qcts
