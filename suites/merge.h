// `qcts merge`: the shards of one run joined into one report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts {

struct MergeRequest {
  std::vector<std::filesystem::path> parts;     // folders with a run.jsonl, or such files
  std::vector<std::filesystem::path> fixtures;  // the --fixtures of the shards, where they lie here
  std::filesystem::path out = "out";
  bool json = false;
  std::vector<std::string> arguments;  // the command line, for the report
};

// Writes out/{run.jsonl,report.json,junit.xml} as the undivided run would have, prints its summary. Throws
// RunError (usage) when a shard is missing, there twice or unfinished, a case is judged twice or never, or
// the parts are of different runs: version, plan, fixtures, selection, providers and their hashes, processor.
Outcome merge(const MergeRequest& request);

}  // namespace qcts
