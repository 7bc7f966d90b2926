// SPDX-License-Identifier: BSD-3-Clause
// The record of a run. The first line describes the run; each further line is one verdict.
// During the run, the record is run.jsonl, and each line is flushed at once.
// A finished run has run.jsonl.gz instead of run.jsonl.
// The record is enough to resume a killed run, to join the shards of a run, and to compare runs.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts {

inline constexpr int kRunRecordSchema = 2;

struct RunHead {
  std::string suite_version, suite_commit;
  std::string plan, plan_sha256, fixtures_sha256, mustpass_sha256;
  std::string started_utc, latency_note;
  std::vector<std::string> arguments, selection, fixtures, infrastructure;  // `selection` excludes the shard
  nlohmann::ordered_json environment = nlohmann::ordered_json::object();
  nlohmann::ordered_json providers = nlohmann::ordered_json::array();  // each with the sha256 of its library
  uint64_t seed = 0, memory_limit_bytes = 0;
  std::string seed_sha256;  // of the file with a secret seed, for which `seed` is 0 here
  uint32_t threads = 1;
  bool gate_latency = false;
  uint32_t shard = 1, shards = 1;
  uint64_t cases = 0;          // number of cases of this shard
  uint64_t all_cases = 0;      // number of cases of all shards together
  std::string cases_sha256;    // ids_sha256() of all shards together
  std::string program_sha256;  // of qcts; "" if shards that different programs judged were joined
};

nlohmann::ordered_json to_json(const RunHead& head);
// Throws std::runtime_error, which names the field.
RunHead run_head_from_json(const nlohmann::ordered_json& json);

// Returns the first field that shows that two heads belong to different runs, as "seed: 0 there, 7 here".
// Returns "" if the verdicts of both belong in one report.
// Ignores start time, arguments, shard and the machine's load.
std::string difference(const RunHead& there, const RunHead& here);

// Returns the SHA-256 of the sorted full ids, one per line.
std::string ids_sha256(std::vector<std::string> ids);
std::string file_sha256(const std::filesystem::path& path);  // throws std::runtime_error

struct RunRecord {
  RunHead head;
  std::vector<Verdict> verdicts;  // as judged, without waivers
  uint64_t complete_bytes = 0;    // length up to the end of the last complete line
  bool truncated = false;         // true if an incomplete line follows because the writer died
};

// Returns the lines of a record, compressed or not, without their line feeds. Throws std::runtime_error.
std::vector<std::string> record_lines(const std::filesystem::path& file);
// Reads a record, compressed or not. Leaves out a last line without a line feed.
// Throws std::runtime_error, which names the line.
// The errors are a missing head, a line that is not a verdict, and a case with two verdicts.
RunRecord read_run_record(const std::filesystem::path& file);
// Returns the record in a folder: run.jsonl, or else run.jsonl.gz. Returns a file unchanged.
// The record does not have to exist.
std::filesystem::path record_of(const std::filesystem::path& folder_or_file);
// Replaces the folder's run.jsonl by run.jsonl.gz. If it throws std::runtime_error, run.jsonl is still there.
void compress_record(const std::filesystem::path& folder);
// Turns a finished run's run.jsonl.gz back into run.jsonl, to continue the run. Throws std::runtime_error.
void uncompress_record(const std::filesystem::path& folder);
// Renames the record of a finished run to before.jsonl.gz, so that the next run can be compared with it.
// Returns the new name, or "" if there is no such record.
std::filesystem::path keep_as_before(const std::filesystem::path& folder);
// Returns true if the file has a complete first line or is compressed.
// A run that died before its first line was complete cannot be resumed.
bool has_run_head(const std::filesystem::path& file);

class RunRecordWriter {
 public:
  // Creates a new record. Throws std::runtime_error.
  void create(const std::filesystem::path& file, const RunHead& head);
  // Continues a record after its last complete line. Throws std::runtime_error.
  void append_to(const std::filesystem::path& file, const RunRecord& record);
  void add(const Verdict& verdict);
  void close();  // throws std::runtime_error if a line could not be written

 private:
  std::ofstream out_;
};

}  // namespace qcts
