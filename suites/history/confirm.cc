// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/confirm.h"

#include <map>
#include <set>
#include <tuple>

#include "reference/schemes/scheme.h"
#include "suites/base/run_error.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/cases/plan.h"
#include "suites/record/run_record.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;
using RowKey = std::tuple<Op, std::string, std::string>;  // with family and variant

constexpr const char* kJudged = "cuda";  // the provider

const Json* provider_of(const RunHead& head) {
  for (const Json& provider : head.providers)
    if (provider.value("name", "") == kJudged) return &provider;
  return nullptr;
}

// Returns why a record is not evidence, or "".
std::string why_refused(const RunRecord& record, const std::string& library_sha256) {
  const RunHead& head = record.head;
  const Json device = head.environment.value("device", Json());
  const Json* provider = provider_of(head);
  if (!device.is_object()) return "it was not judged on a device";
  if (device.value("fake", true)) return "its device is the fake one";
  if (device.value("driver_named", true)) return "the environment named its driver (QCTS_CUDA_DRIVER)";
  if (provider == nullptr) return std::string("it has no provider ") + kJudged;
  if (provider->value("isolation", "not isolated").starts_with("not isolated"))
    return "it was " + provider->value("isolation", "not isolated");
  if (provider->value("sha256", "") != library_sha256)
    return "it judged another library, with SHA-256 " + provider->value("sha256", "");
  if (head.suite_commit.empty() || head.suite_commit == "unknown" || head.suite_commit.ends_with("-dirty"))
    return "its commit is " + (head.suite_commit.empty() ? "unknown" : head.suite_commit);
  if (record.truncated || record.verdicts.size() != head.cases || head.shards != 1)
    return "a part is missing: it has " + std::to_string(record.verdicts.size()) + " of " +
           std::to_string(head.all_cases) + " cases (--resume goes on, qcts merge joins shards)";
  return {};
}

// True if nothing but the device narrowed the complete plan: a device is asked two kinds.
bool is_complete(const RunHead& head) {
  if (head.plan != kCompletePlan) return false;
  std::set<std::string> kinds;
  for (const std::string& word : head.selection)
    if (word.starts_with("--kind "))
      kinds.insert(word);
    else if (!word.starts_with("--device ") && !word.starts_with("--provider "))
      return false;
  return kinds == std::set<std::string>{"--kind determinism", "--kind numerics"};
}

std::string family_of(const std::string& scheme) {
  const Scheme* known = find_scheme(scheme);
  return known == nullptr ? scheme : std::string(known->family());
}

void begin_ledger(const RunRecord& record, Ledger& ledger) {
  const Json& device = record.head.environment.at("device");
  ledger.gpu = device.at("name");
  ledger.uuid = device.at("uuid");
  ledger.capability = device.at("capability");
  ledger.driver_version = device.at("driver_version");
  ledger.driver_sha256 = device.at("driver_sha256");
  ledger.suite_version = record.head.suite_version;
  ledger.commit = record.head.suite_commit;
  ledger.date = record.head.started_utc.substr(0, 10);
  ledger.plan = record.head.plan;
}

std::string other_than(const Ledger& first, const RunRecord& record) {
  Ledger now;
  begin_ledger(record, now);
  if (now.uuid != first.uuid) return "GPU " + now.gpu + " (" + now.uuid + ")";
  if (now.driver_sha256 != first.driver_sha256) return "driver " + std::to_string(now.driver_version);
  if (now.commit != first.commit) return "commit " + now.commit;
  return {};
}

// A case that several records have counts once, and has failed if it failed in any.
std::map<std::string, Verdict> joined_verdicts(const std::vector<RunRecord>& records) {
  std::map<std::string, Verdict> verdicts;
  for (const RunRecord& record : records)
    for (const Verdict& verdict : record.verdicts) {
      if (verdict.provider != kJudged) continue;
      Verdict& kept = verdicts.try_emplace(verdict.full_id(), verdict).first->second;
      if (blocks_conformance(verdict, false)) kept = verdict;
    }
  return verdicts;
}

std::map<std::pair<Op, std::string>, uint64_t> mustpass_counts(const fs::path& root) {
  std::map<std::pair<Op, std::string>, uint64_t> counts;
  for (const std::string& text : load_mustpass(root / "suites/mustpass/default.txt"))
    if (const auto id = parse_case_id(text);
        id && (id->kind == Kind::numerics || id->kind == Kind::determinism))
      ++counts[{id->op, family_of(id->scheme)}];
  return counts;
}

// A case that several records have counts once, and differs if it differs in any.
Digests joined_digests(const ConfirmRequest& request) {
  Digests all;
  std::map<std::string, ComparedDigest> joined;
  for (const fs::path& run : request.runs)
    for (const fs::path& executor : request.executor_runs) {
      const Digests digests = compare_digests(run, executor);
      all.other_sums += digests.other_sums;
      for (const ComparedDigest& digest : digests.cases) {
        ComparedDigest& kept = joined.try_emplace(digest.id, digest).first->second;
        if (!digest.is_equal()) kept = digest;
      }
    }
  for (auto& [id, digest] : joined) all.cases.push_back(std::move(digest));
  return all;
}

void count(const std::vector<RunRecord>& records, const Digests& digests, const fs::path& root,
           Ledger& ledger) {
  std::map<RowKey, LedgerRow> rows;
  for (const auto& [full_id, verdict] : joined_verdicts(records)) {
    LedgerRow& row = rows[{verdict.case_id.op, family_of(verdict.case_id.scheme), verdict.variant}];
    ++row.asked;
    row.passed += verdict.status == Status::pass;
    row.failed += blocks_conformance(verdict, false);
    row.declined += verdict.status == Status::not_supported;
  }
  for (const ComparedDigest& digest : digests.cases) {
    LedgerRow& row = rows[{digest.op, family_of(digest.scheme), digest.variant}];
    ++(digest.is_equal() ? row.equal_digests : row.differing_digests);
  }
  const auto mustpass = mustpass_counts(root);
  for (auto& [key, row] : rows) {
    std::tie(row.op, row.scheme, row.variant) = key;
    row.sources_sha256 = row_sources_sha256(root, row.op, row.variant);
    const auto listed = mustpass.find({row.op, row.scheme});
    row.mustpass = listed == mustpass.end() ? 0 : listed->second;
    ledger.rows.push_back(row);
  }
}

}  // namespace

Confirmation confirmed(const ConfirmRequest& request) {
  Confirmation confirmation;
  Ledger& ledger = confirmation.ledger;
  ledger.library_sha256 = file_sha256(request.library);
  std::vector<RunRecord> records;
  for (const fs::path& run : request.runs) {
    const fs::path file = record_of(run);
    if (!fs::is_regular_file(file)) throw UsageError(run.string() + ": there is no record of a run");
    try {
      records.push_back(read_run_record(file));
    } catch (const std::runtime_error& error) {
      throw UsageError(error.what());
    }
    if (const std::string why = why_refused(records.back(), ledger.library_sha256); !why.empty())
      throw UsageError(file.string() + " is not evidence: " + why);
    if (records.size() == 1) begin_ledger(records.back(), ledger);
    if (const std::string other = other_than(ledger, records.back()); !other.empty())
      throw UsageError(file.string() + " is from another run than " + request.runs.front().string() + ": " +
                       other);
    ledger.complete = ledger.complete || is_complete(records.back().head);
    ledger.records_sha256.push_back(file_sha256(file));
  }
  confirmation.digests = joined_digests(request);
  count(records, confirmation.digests, request.root, ledger);
  return confirmation;
}

}  // namespace qcts
