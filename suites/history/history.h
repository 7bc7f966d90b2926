// SPDX-License-Identifier: BSD-3-Clause
// The history of runs in one SQLite file. Runs belong to series.
// A series has one machine class, plan, selection and number of threads.
// Nothing is ever compared or drawn across two series.
// Only changes of verdicts are stored, so a night that equals the previous one takes a few KB.
// Latency is stored each night.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "suites/comparison/latency_changes.h"
#include "suites/comparison/recorded_run.h"
#include "suites/history/database.h"

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
  std::vector<uint64_t> counts = std::vector<uint64_t>(kStatusCount);  // counts by Status
  uint64_t changed = 0, added = 0,
           gone = 0;       // numbers of cases whose status differs from the previous run; 0 in the first run
  bool suspended = false;  // true if the run's latency does not count
};

struct HistoryFlip {
  int64_t run = 0;
  Status before, after;
};

// How many cases of one scheme passed on one night, failed, stayed undecided and were declined.
struct NightCounts {
  uint64_t pass = 0, bad = 0, undecided = 0, declined = 0;
};
// By scheme, one NightCounts for each night.
using SchemeNights = std::map<std::string, std::vector<NightCounts>>;

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
  uint64_t nights = 0;  // nights of its series, including this one
  bool already_there = false;
  HistoryRun counts;
};

class History {
 public:
  // Mode::write creates the file if necessary and makes sure that it can be written.
  // Throws UsageError if the file is missing (Mode::read).
  // Throws UsageError if the file belongs to another program or another schema.
  // Throws RunError (infrastructure) if the file cannot be read or written.
  History(const std::filesystem::path& file, Database::Mode mode);

  // Adds a finished run as a whole or not at all: if the process dies here, the file stays as it was.
  // A run that the history has already is not added again.
  // Throws UsageError for a shard, and for a run that started before the last run of its series.
  Appended append(const RecordedRun& run);

  std::vector<HistorySeries> series();
  std::vector<HistoryRun> runs(int64_t series);
  // Returns the cases whose status changed, the ones with the largest number of changes first.
  std::vector<CaseFlips> flips(int64_t series);
  std::vector<PaceSeries> paces(int64_t series);
  // Counts the cases of each scheme in `runs`, which are runs of the series in their order. Latency cases do
  // not count.
  SchemeNights scheme_nights(int64_t series, const std::vector<HistoryRun>& runs);

  // Returns the last run of `run`'s series that came before `run`, or nullopt if there is none.
  std::optional<RecordedRun> last_before(const RecordedRun& run);
  // Returns the trusted nights of each case, from its last change point up to the night of last_before().
  PaceHistory pace_history(const RecordedRun& run);

 private:
  std::optional<int64_t> find_series(const HistorySeries& wanted);
  // Returns the last run of `run`'s series that came before `run`, or 0 if there is none.
  int64_t id_before(const RecordedRun& run);
  RecordedRun load(int64_t run);

  Database database_;
};

// A case's trusted nights. `logs` has the logarithms of its time over the roof's.
// If the case's time alone varies less from night to night, `logs` has the logarithms of that time.
// `nights` has the index of each night in PaceSeries::nights.
struct PaceLevels {
  bool over_roof = true;
  std::vector<double> logs;
  std::vector<size_t> nights;
};
PaceLevels trusted_levels(const PaceSeries& series);

}  // namespace qcts
