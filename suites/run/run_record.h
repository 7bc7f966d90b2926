// SPDX-License-Identifier: BSD-3-Clause
// run.jsonl: what a run is, in its first line, then one verdict a line, flushed as they come. It is enough to
// go on with a run that was killed, and to join the shards of one.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts {

inline constexpr int kRunRecordSchema = 1;

struct RunHead {
  std::string suite_version, suite_commit;
  std::string plan, plan_sha256, fixtures_sha256, mustpass_sha256;
  std::string started_utc, latency_note;
  std::vector<std::string> arguments, selection, fixtures, infrastructure;  // selection without the shard
  nlohmann::ordered_json environment = nlohmann::ordered_json::object();
  nlohmann::ordered_json providers = nlohmann::ordered_json::array();  // each with the sha256 of its library
  uint64_t seed = 0, memory_limit_bytes = 0;
  uint32_t threads = 1;
  bool gate_latency = false;
  uint32_t shard = 1, shards = 1;
  uint64_t cases = 0;        // of this shard
  uint64_t all_cases = 0;    // of all shards together
  std::string cases_sha256;  // ids_sha256() of all shards together
};

nlohmann::ordered_json to_json(const RunHead& head);
RunHead run_head_from_json(const nlohmann::ordered_json& json);  // throws std::runtime_error naming the field

// "seed: 0 there, 7 here" for the first thing that makes two heads different runs; empty when verdicts of
// both belong into one report. Start, arguments, shard and the machine's load do not count.
std::string difference(const RunHead& there, const RunHead& here);

// SHA-256 over sorted full ids, a line each.
std::string ids_sha256(std::vector<std::string> ids);
std::string file_sha256(const std::filesystem::path& path);  // throws std::runtime_error

struct RunRecord {
  RunHead head;
  std::vector<Verdict> verdicts;  // as judged, waivers not applied
  uint64_t whole_bytes = 0;       // up to the end of the last whole line
  bool torn = false;              // there was more: the line in which its writer died
};

// Throws std::runtime_error naming the line: no head, a line that is no verdict, a case that has two.
// A last line without its line feed is left out.
RunRecord read_run_record(const std::filesystem::path& file);
// Does the file hold a whole first line? A run that died before it has nothing to go on with.
bool has_run_head(const std::filesystem::path& file);

class RunRecordWriter {
 public:
  // A new record. Throws std::runtime_error.
  void create(const std::filesystem::path& file, const RunHead& head);
  // Goes on with one, behind its last whole line. Throws std::runtime_error.
  void append_to(const std::filesystem::path& file, const RunRecord& record);
  void add(const Verdict& verdict);

 private:
  std::ofstream out_;
};

}  // namespace qcts
