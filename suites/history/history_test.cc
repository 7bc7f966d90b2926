// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/history.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/comparison/comparison.h"
#include "suites/comparison/sample_runs.h"
#include "suites/history/history_view.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string night_text(int night) {
  char text[40];
  std::snprintf(text, sizeof text, "2026-01-%02dT00:00:00Z", night + 1);
  return text;
}

class HistoryFile : public testing::Test {
 protected:
  fs::path file() const { return scratch_.path() / "history.sqlite"; }
  History open(Database::Mode mode = Database::Mode::write) const { return History(file(), mode); }

  template <typename Body>
  static std::string refusal_of(Outcome want, Body body) {
    try {
      body();
    } catch (const RunError& error) {
      EXPECT_EQ(error.outcome(), want) << error.what();
      return error.what();
    }
    return "not refused";
  }

  ScratchFolder scratch_;
};

// A hundred cases; each night a few change, come or go.
RecordedRun changing_night(int night) {
  std::vector<CaseState> cases;
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t draw = splitmix64(static_cast<uint64_t>(night), i) % 20;
    if (draw == 0) continue;
    CaseState state =
        sample_case("size.file/int8_row/n" + std::to_string(100 + i), draw == 1   ? Status::fail
                                                                      : draw == 2 ? Status::not_supported
                                                                                  : Status::pass);
    state.bytes = {{"file_bytes", 1000 + i}, {"payload_bytes", draw == 3 ? 7 : 900}};
    cases.push_back(std::move(state));
  }
  for (CaseState& timed : eight_timed_cases(static_cast<uint64_t>(night))) cases.push_back(std::move(timed));
  std::sort(cases.begin(), cases.end(), [](const CaseState& a, const CaseState& b) { return a.id < b.id; });
  return sample_run(std::move(cases), night_text(night));
}

TEST_F(HistoryFile, GivesEveryNightBackAsItWas) {
  for (int night = 0; night < 12; ++night) {
    const RecordedRun run = changing_night(night);
    const Appended added = open().append(run);
    EXPECT_EQ(added.nights, static_cast<uint64_t>(night) + 1);
    const std::optional<RecordedRun> back = open(Database::Mode::read).last_before(changing_night(night + 1));
    ASSERT_TRUE(back);
    const RunComparison c = compare(run, *back);
    EXPECT_EQ(c.unchanged + c.still_failing, run.cases.size());
    EXPECT_EQ(back->cases.size(), run.cases.size());
    EXPECT_TRUE(c.sizes.empty());
    EXPECT_TRUE(c.environment.empty());
    for (size_t i = 0; i < run.cases.size(); ++i) {
      EXPECT_EQ(back->cases[i].reason, run.cases[i].reason);
      EXPECT_EQ(back->cases[i].bytes, run.cases[i].bytes);
      ASSERT_EQ(back->cases[i].pace.has_value(), run.cases[i].pace.has_value());
      if (!run.cases[i].pace) continue;
      EXPECT_EQ(back->cases[i].pace->of_roof.low, run.cases[i].pace->of_roof.low);
      EXPECT_EQ(back->cases[i].pace->of_roof.samples, run.cases[i].pace->of_roof.samples);
    }
  }
}

TEST_F(HistoryFile, CountsWhatChangedFromNightToNight) {
  for (int night = 0; night < 12; ++night) open().append(changing_night(night));
  History history = open(Database::Mode::read);
  const std::vector<HistoryRun> runs = history.runs(1);
  ASSERT_EQ(runs.size(), 12u);
  EXPECT_EQ(runs[0].changed + runs[0].added + runs[0].gone, 0u);
  for (int night = 1; night < 12; ++night) {
    const RunComparison c = compare(changing_night(night - 1), changing_night(night));
    size_t added = c.added.size();
    for (const StatusChange& change : c.newly_failing) added += !change.before;
    EXPECT_EQ(runs[static_cast<size_t>(night)].added, added);
    EXPECT_EQ(runs[static_cast<size_t>(night)].gone, c.gone.size());
  }
}

TEST_F(HistoryFile, ANightWithoutAChangeIsSmall) {
  std::vector<CaseState> cases;
  for (int i = 0; i < 5000; ++i)
    cases.push_back(sample_case("numerics.linear/int8_row/n" + std::to_string(10000 + i)));
  open().append(sample_run(cases, night_text(0)));
  const uintmax_t first = fs::file_size(file());
  for (int night = 1; night <= 10; ++night) open().append(sample_run(cases, night_text(night)));
  EXPECT_LT((fs::file_size(file()) - first) / 10, 5000u);
}

TEST_F(HistoryFile, TheSameRunIsAddedOnce) {
  const Appended first = open().append(changing_night(0)), again = open().append(changing_night(0));
  EXPECT_FALSE(first.already_there);
  EXPECT_TRUE(again.already_there);
  EXPECT_EQ(again.run, first.run);
  EXPECT_EQ(open().runs(1).size(), 1u);
}

TEST_F(HistoryFile, ARunIsComparedWithTheOneBeforeItEvenIfItIsThere) {
  for (int night = 0; night < 3; ++night) open().append(changing_night(night));
  History history = open(Database::Mode::read);
  EXPECT_EQ(history.last_before(changing_night(1))->head.started_utc, night_text(0));
  EXPECT_EQ(history.last_before(changing_night(2))->head.started_utc, night_text(1));
  EXPECT_EQ(history.last_before(changing_night(5))->head.started_utc, night_text(2));
  EXPECT_FALSE(history.last_before(changing_night(0)));
}

// Whatever makes two runs different questions or different machines keeps them in two series.
TEST_F(HistoryFile, SeriesNeverMix) {
  const std::vector<void (*)(RecordedRun&)> others = {
      [](RecordedRun&) {},
      [](RecordedRun& run) { run.head.environment["cpu_family"] = 26; },
      [](RecordedRun& run) { run.head.environment["features"].push_back("avx512f"); },
      [](RecordedRun& run) { run.head.plan = "quick"; },
      [](RecordedRun& run) { run.head.selection = {"--kind size"}; },
      [](RecordedRun& run) { run.head.selection = {"--provider ./acme.so"}; },
      [](RecordedRun& run) { run.head.threads = 2; }};
  for (size_t i = 0; i < others.size(); ++i) {
    RecordedRun run = changing_night(0);
    others[i](run);
    EXPECT_FALSE(open().last_before(run)) << i;
    EXPECT_EQ(open().append(run).nights, 1u) << i;
    for (const auto& [id, level] : open().pace_history(changing_night(1)))
      EXPECT_EQ(level.logs.size(), 1u) << id;
  }
  EXPECT_EQ(open().series().size(), others.size());
  EXPECT_EQ(view_history(*std::make_unique<History>(open()), {}).size(), others.size());
}

TEST_F(HistoryFile, RefusesShardsAndRunsOutOfOrder) {
  RecordedRun shard = changing_night(1);
  shard.head.shards = 3;
  EXPECT_THAT(refusal_of(Outcome::usage, [&] { open().append(shard); }), HasSubstr("merge"));
  open().append(changing_night(1));
  EXPECT_THAT(refusal_of(Outcome::usage, [&] { open().append(changing_night(0)); }),
              HasSubstr("in the order in which they started"));
  EXPECT_EQ(open().runs(1).size(), 1u) << "a refused run leaves the file as it was";
}

TEST_F(HistoryFile, OtherFilesAreRefusedByName) {
  EXPECT_THAT(refusal_of(Outcome::usage, [&] { open(Database::Mode::read); }),
              HasSubstr("there is no history"));
  std::ofstream(file()) << "not a database, but long enough to look like one: " << std::string(2000, 'x');
  for (const Database::Mode mode : {Database::Mode::read, Database::Mode::write})
    EXPECT_THAT(refusal_of(Outcome::usage, [&] { open(mode); }), HasSubstr("not an SQLite file"));
  fs::remove(file());
  Database(file(), Database::Mode::write).execute("CREATE TABLE mine (x)");
  for (const Database::Mode mode : {Database::Mode::read, Database::Mode::write})
    EXPECT_THAT(refusal_of(Outcome::usage, [&] { open(mode); }), HasSubstr("not a qcts history"));
  fs::remove(file());
  open().append(changing_night(0));
  for (const int schema : {0, kHistorySchema + 1}) {
    Database(file(), Database::Mode::write).execute("PRAGMA user_version = " + std::to_string(schema));
    for (const Database::Mode mode : {Database::Mode::read, Database::Mode::write})
      EXPECT_THAT(refusal_of(Outcome::usage, [&] { open(mode); }),
                  HasSubstr("schema " + std::to_string(schema)));
  }
}

TEST_F(HistoryFile, AnAppendThatFailsHalfwayLeavesTheFileAsItWas) {
  open().append(changing_night(0));
  Database(file(), Database::Mode::write)
      .execute(
          "CREATE TRIGGER full AFTER INSERT ON pace WHEN new.run = 2 BEGIN SELECT RAISE(FAIL, 'disk full'); "
          "END");
  EXPECT_THAT(refusal_of(Outcome::infrastructure, [&] { open().append(changing_night(1)); }),
              HasSubstr("disk full"));
  EXPECT_EQ(Database(file(), Database::Mode::read).number("SELECT count(*) FROM case_state WHERE run > 1"),
            0);
  Database(file(), Database::Mode::write).execute("DROP TRIGGER full");
  EXPECT_EQ(open().append(changing_night(1)).nights, 2u);
}

TEST_F(HistoryFile, CountsTheCasesOfEachSchemeByNight) {
  const auto night = [](Status status, bool second) {
    std::vector<CaseState> cases = {sample_case("numerics.linear/int8_row/a", status),
                                    sample_case("numerics.pack/nf4/a", Status::pass),
                                    sample_case("latency.linear/int8_row/a", Status::fail)};
    if (second) cases.push_back(sample_case("determinism.linear/int8_row/b", Status::not_supported));
    return cases;
  };
  open().append(sample_run(night(Status::pass, false), night_text(0)));
  open().append(sample_run(night(Status::fail, true), night_text(1)));
  open().append(sample_run(night(Status::fail, true), night_text(2)));
  open().append(sample_run(night(Status::inconclusive, false), night_text(3)));
  History history = open(Database::Mode::read);
  std::vector<HistoryRun> runs = history.runs(1);
  const auto of = [](const std::vector<NightCounts>& nights, uint64_t NightCounts::*count) {
    std::vector<uint64_t> list;
    for (const NightCounts& one : nights) list.push_back(one.*count);
    return list;
  };
  using testing::ElementsAre;
  SchemeNights schemes = history.scheme_nights(1, runs);
  EXPECT_EQ(schemes.size(), 2u);
  EXPECT_THAT(of(schemes["int8_row"], &NightCounts::pass), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(of(schemes["int8_row"], &NightCounts::bad), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(of(schemes["int8_row"], &NightCounts::undecided), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(of(schemes["int8_row"], &NightCounts::declined), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(of(schemes["nf4"], &NightCounts::pass), ElementsAre(1, 1, 1, 1));
  runs.erase(runs.begin(), runs.begin() + 2);
  EXPECT_THAT(of(history.scheme_nights(1, runs)["int8_row"], &NightCounts::bad), ElementsAre(1, 0))
      << "the state of a night that is not asked for lasts";
}

TEST_F(HistoryFile, ShowsTheStepOfASlowerKernelAndItsNight) {
  for (int night = 0; night < 24; ++night) {
    std::vector<CaseState> cases = eight_timed_cases(static_cast<uint64_t>(night) + 50);
    if (night >= 12) cases[2] = timed_case(cases[2].id, 1.04 * cases[2].pace->us.value);
    if (night == 20) cases[5].pace->trusted = false;
    cases.push_back(
        sample_case("numerics.linear/int8_row/flaky", night % 3 == 1 ? Status::fail : Status::pass));
    open().append(sample_run(std::move(cases), night_text(night)));
  }
  History history = open(Database::Mode::read);
  const std::vector<SeriesView> views = view_history(history, {});
  ASSERT_EQ(views.size(), 1u);
  ASSERT_EQ(views[0].trends.size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(views[0].trends[i].changes.size(), i == 2 ? 1u : 0u) << i;
  const ChangePoint change = views[0].trends[2].changes.at(0);
  EXPECT_NEAR(static_cast<double>(change.at), 12, 1);
  EXPECT_NEAR(std::exp(change.step.value), 1.04, 0.005);
  ASSERT_EQ(views[0].flips.size(), 1u);
  EXPECT_EQ(views[0].flips[0].flips.size(), 16u);
  const std::string text = history_text(views, {});
  EXPECT_THAT(
      text, testing::AllOf(HasSubstr("+4."), HasSubstr("since run 13"), HasSubstr("flaky"), HasSubstr("▁")));
  EXPECT_THAT(sparkline(views[0].trends[5].series, true, 0), HasSubstr("x"));
  // The next night is compared with the level after the step.
  const RecordedRun next = sample_run(eight_timed_cases(99), night_text(25));
  EXPECT_EQ(history.pace_history(next).at(next.cases[2].id).logs.size(), 24 - change.at);
}

}  // namespace
}  // namespace qcts
