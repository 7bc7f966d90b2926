// SPDX-License-Identifier: BSD-3-Clause
// The history of runs in one SQLite file. Runs belong to series: one machine class, plan, selection and
// number of threads. Nothing is ever compared or drawn across two series. Of verdicts only changes are
// stored, so that a night like the one before takes a few KB; latency is stored each night.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "suites/history/database.h"
#include "suites/history/latency_changes.h"
#include "suites/history/recorded_run.h"

namespace qcts {

inline constexpr int kHistorySchema = 2;

struct HistorySeries {
  int64_t id = 0;
  std::string machine_class, plan, selection;
  uint32_t threads = 1;
  bool same_as(const HistorySeries& other) const;
};
HistorySeries series_of(const RunHead& head);

struct HistoryRun {
  int64_t id = 0;
  std::string started, commit;
  std::vector<uint64_t> counts = std::vector<uint64_t>(kStatusCount);  // by Status
  uint64_t changed = 0, added = 0,
           gone = 0;       // cases whose status differs from the run before; 0 in the first
  bool suspended = false;  // its latency does not count
};

struct HistoryFlip {
  int64_t run = 0;
  Status before, after;
};

struct CaseFlips {
  std::string id;
  std::vector<HistoryFlip> flips;
};

struct PaceNight {
  int64_t run = 0;
  Pace pace;
};

struct PaceSeries {
  std::string id;
  std::vector<PaceNight> nights;
};

struct Appended {
  int64_t run = 0;
  uint64_t nights = 0;  // of its series, with this one
  bool already_there = false;
  HistoryRun counts;
};

class History {
 public:
  // Mode::write creates the file if need be, and makes sure that it can be written. Throws RunError: usage if
  // the file is missing (Mode::read), of another program or of another schema; infrastructure if it cannot be
  // read or written.
  History(const std::filesystem::path& file, Database::Mode mode);

  // Adds a finished run, all of it or nothing: a process that dies here leaves the file as it was. A run that
  // is already there is not added again. Throws RunError (usage) for a shard, and for a run that started
  // before the last of its series.
  Appended append(const RecordedRun& run);

  std::vector<HistorySeries> series();
  std::vector<HistoryRun> runs(int64_t series);
  // Returns the cases whose status changed, those with the most changes first.
  std::vector<CaseFlips> flips(int64_t series);
  std::vector<PaceSeries> paces(int64_t series);

  // Returns the last run of `run`'s series, without `run` itself and what came after it; nullopt if there is
  // none.
  std::optional<RecordedRun> last_before(const RecordedRun& run);
  // Returns for each case its trusted nights up to that of last_before(), from the last change point on.
  PaceHistory pace_history(const RecordedRun& run);

 private:
  std::optional<int64_t> find_series(const HistorySeries& wanted);
  // The last run of `run`'s series that is not `run` and not after it; 0 if there is none.
  int64_t id_before(const RecordedRun& run);
  RecordedRun load(int64_t run);

  Database database_;
};

// A case's trusted nights: the logarithms of its time over the roof's, or of its time alone if that varies
// less from night to night, and for each its index in `nights`.
struct PaceLevels {
  bool over_roof = true;
  std::vector<double> logs;
  std::vector<size_t> nights;
};
PaceLevels trusted_levels(const PaceSeries& series);

}  // namespace qcts
