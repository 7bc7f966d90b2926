// SPDX-License-Identifier: BSD-3-Clause
// qcts_tests: runs the unit tests, and every case of the default plan as a GoogleTest of the same id, so that
// --gtest_filter accepts the ids that `qcts run --filter` accepts; exact ids may be from the full plan.
// Builtin kernels and files are judged in this process, other providers in a worker. Latency is left out:
// measuring takes too long for a test. With --only, the cases are not there. Exit codes: 0 all passed, 1 a
// failure, 2 usage, 3 nothing was checked (no test matched, or all were skipped), 5 infrastructure.
#include <fnmatch.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reports/waivers.h"
#include "suites/base/paths.h"
#include "suites/cases/case_key.h"
#include "suites/cases/expand.h"
#include "suites/judge/judge.h"
#include "suites/providers/reference_provider.h"
#include "suites/run/workers/supervisor.h"
#include "suites/test_paths.h"

namespace qcts {
namespace {

constexpr const char* kNoTest = "-*";  // a filter

// Owns everything that the cases refer to while tests run.
struct RegisteredCases {
  std::vector<std::filesystem::path> fixture_folders;
  Registry registry;
  Fixtures fixtures;
  Plan plan;
  std::vector<Case> cases;
  std::vector<Waiver> waivers;
  ScratchFolder scratch;
  std::vector<ProviderSlot> workers;
  std::set<std::string> run_elsewhere;  // ids of files that a plug-in loads and saves
};

void report(std::vector<Waiver>& waivers, Verdict verdict) {
  apply_waivers(waivers, verdict);
  switch (verdict.status) {
    case Status::pass:
      return;
    case Status::waived:
    case Status::robustness:
    case Status::not_supported:
      GTEST_SKIP() << status_name(verdict.status) << ": " << verdict.reason;
    default:
      GTEST_FAIL() << status_name(verdict.status) << ": " << verdict.reason << "\nrerun: " << verdict.rerun;
  }
}

class CaseTest : public testing::Test {
 public:
  CaseTest(const Case& c, JudgeContext context, std::vector<Waiver>& waivers)
      : case_(c), context_(std::move(context)), waivers_(waivers) {}
  void TestBody() override {
    const ScratchFolder scratch;
    context_.scratch = scratch.path();
    report(waivers_, judge(case_, context_));
  }

 private:
  const Case& case_;
  JudgeContext context_;
  std::vector<Waiver>& waivers_;
};

class WorkerCaseTest : public testing::Test {
 public:
  WorkerCaseTest(RegisteredCases& registered, Task task) : registered_(registered), task_(std::move(task)) {}
  void TestBody() override {
    std::optional<Verdict> answer;
    judge_tasks(
        registered_.workers, {task_}, 1,
        [&](Verdict verdict) {
          answer = std::move(verdict);
          return true;
        },
        [](const std::vector<std::string>&) { return true; });
    ASSERT_TRUE(answer.has_value()) << "the worker gave no verdict";
    report(registered_.waivers, std::move(*answer));
  }

 private:
  RegisteredCases& registered_;
  Task task_;
};

// Registers "numerics.linear/int8_row/..." as suite "numerics", test "linear/int8_row/...", which GoogleTest
// joins with a dot.
template <typename Factory>
void register_case(const std::string& full_id, Factory factory) {
  const size_t dot = full_id.find('.');
  testing::RegisterTest(full_id.substr(0, dot).c_str(), full_id.substr(dot + 1).c_str(), nullptr, nullptr,
                        __FILE__, __LINE__, std::move(factory));
}

std::vector<std::string> positive_patterns(const std::string& filter) {
  const std::string positive = filter.substr(0, filter.find('-'));
  std::vector<std::string> patterns;
  for (size_t begin = 0; begin < positive.size();) {
    const size_t end = std::min(positive.find(':', begin), positive.size());
    patterns.push_back(positive.substr(begin, end - begin));
    begin = end + 1;
  }
  return patterns;
}

// Returns whether a positive pattern of the filter can match a plug-in's case. Starting one takes seconds.
bool filter_wants_plugins(const std::string& filter) {
  const std::vector<std::string> patterns = positive_patterns(filter);
  if (patterns.empty()) return true;
  for (const std::string& pattern : patterns) {
    const std::string literal = pattern.substr(0, pattern.find_first_of("*?"));
    for (const std::string kind : {"numerics.", "determinism.", "round_trip.file/plain/"}) {
      const size_t shared = std::min(kind.size(), literal.size());
      if (kind.compare(0, shared, literal, 0, shared) == 0 && literal.find("/builtin_") == std::string::npos)
        return true;
    }
  }
  return false;
}

JudgeContext context() {
  JudgeContext context;
  context.targets = targets_folder();
  context.program = program_word();
  return context;
}

// Returns whether c is the round trip of a program, without the plug-in that runs it.
bool is_placeholder(const Case& c) {
  return c.id.kind == Kind::round_trip && c.judges_file() && is_program(*c.golden());
}

// Adds the cases of the full plan that the filter names exactly and the default plan leaves out.
void add_exact_cases(RegisteredCases& registered) {
  Selection selection;
  for (const std::string& pattern : positive_patterns(GTEST_FLAG_GET(filter)))
    if (pattern.find_first_of("*?") == pattern.npos && parse_case_id(pattern))
      selection.filters.push_back(pattern);
  if (selection.filters.empty()) return;
  std::set<std::string> known;
  for (const Case& c : registered.cases) known.insert(c.full_id());
  for (Case& c :
       expand(load_plan(plan_path(kFullPlan)),
              {registered.fixtures.goldens, registered.fixtures.malformed, &registered.registry}, selection))
    if (!known.contains(c.full_id())) registered.cases.push_back(std::move(c));
}

void register_own_cases(RegisteredCases& registered) {
  registered.registry.add(builtin_provider());
  registered.registry.add(reference_provider());
  registered.plan = load_plan(plan_path(kDefaultPlan));
  registered.fixtures = load_fixtures(registered.fixture_folders);
  registered.waivers = load_waivers(repository_root() / "suites" / "waivers.json", today_utc());
  registered.cases = expand(
      registered.plan, {registered.fixtures.goldens, registered.fixtures.malformed, &registered.registry});
  add_exact_cases(registered);
  for (const Case& c : registered.cases)
    if (c.id.kind != Kind::latency && !is_placeholder(c))
      register_case(c.full_id(), [&c, &registered]() -> testing::Test* {
        return new CaseTest(c, context(), registered.waivers);
      });
}

void register_plugin_cases(RegisteredCases& registered) {
  for (const std::filesystem::path& library : discovered_plugins()) {
    ProviderSlot slot;
    slot.options.provider = library.string();
    slot.options.fixtures = registered.fixture_folders;
    slot.options.fixture_files = Files::known;
    slot.options.settings = context();
    slot.options.settings.scratch = registered.scratch.path();
    slot.given = library.string();
    slot.logs = registered.scratch.path();
    registered.workers.push_back(std::move(slot));
  }
  start_workers(registered.workers, 60);
  for (size_t i = 0; i < registered.workers.size(); ++i) {
    const WorkerReady& ready = registered.workers[i].ready;
    if (!ready.error.empty()) throw std::runtime_error(registered.workers[i].given + ": " + ready.error);
    OfferTable offers;
    offers.add(ready.offers);
    const ExpandInputs inputs{registered.fixtures.goldens, registered.fixtures.malformed};
    for (const auto& [c, found, undeclared] : expand_paired(registered.plan, inputs, offers, {})) {
      if (c.id.kind == Kind::latency) continue;
      for (const Offer* offer : found) {
        if (c.id.op == Op::file) registered.run_elsewhere.insert(c.id.text());
        const Task task{i,
                        {c.id, full_id(c, *offer), offer->variant},
                        case_key(c, offer->variant).dump(),
                        registered.plan.case_timeout_s};
        register_case(task.name.full_id, [&registered, task]() -> testing::Test* {
          return new WorkerCaseTest(registered, task);
        });
      }
    }
  }
}

// Registers the programs' round trips that no plug-in runs.
void register_placeholders(RegisteredCases& registered) {
  for (const Case& c : registered.cases)
    if (is_placeholder(c) && !registered.run_elsewhere.contains(c.id.text()))
      register_case(c.full_id(), [&c, &registered]() -> testing::Test* {
        return new CaseTest(c, context(), registered.waivers);
      });
}

// Returns the path of a source below the root of the tree. A cached object may name it in another checkout.
std::string path_in_tree(const std::string& file) {
  for (size_t at = 0; at != std::string::npos; at = file.find('/', at + 1)) {
    const std::string below = file.substr(file[at] == '/' ? at + 1 : at);
    if (std::filesystem::exists(source_path(below))) return below;
  }
  return file;
}

// Returns whether `pattern` is a part of `text`, or with * or ? the whole of it.
bool names(const std::string& pattern, const std::string& text) {
  if (pattern.find_first_of("*?") == std::string::npos) return text.find(pattern) != std::string::npos;
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Lets GoogleTest run the tests whose name, or whose source file, is named by one of the patterns.
void select_tests(const std::vector<std::string>& patterns) {
  std::map<std::string, std::string> paths;
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string full_name = std::string(suite.name()) + "." + test.name();
      std::string& path = paths[test.file()];
      if (path.empty()) path = path_in_tree(test.file());
      for (const std::string& pattern : patterns)
        if (names(pattern, full_name) || names(pattern, path)) {
          filter += full_name + ":";
          break;
        }
    }
  }
  GTEST_FLAG_SET(filter, filter.empty() ? kNoTest : filter);
}

// Reads the arguments that remain after GoogleTest has removed its own. Returns the patterns of --only.
std::vector<std::string> read_own_flags(int argc, char** argv, RegisteredCases& registered) {
  std::vector<std::string> only;
  registered.fixture_folders = {fixtures_folder()};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--fixtures=")) {
      registered.fixture_folders.emplace_back(word.substr(11));
    } else if (word == "--fixtures" && i + 1 < argc) {
      registered.fixture_folders.emplace_back(argv[++i]);
    } else if (word == "--only" && i + 1 < argc) {
      only.emplace_back(argv[++i]);
    } else {
      throw std::invalid_argument(
          "unknown option '" + word +
          "' (qcts_tests adds --fixtures DIR and --only PATTERN; --help lists GoogleTest's)");
    }
  }
  return only;
}

void register_cases(RegisteredCases& registered) {
  register_own_cases(registered);
  if (filter_wants_plugins(GTEST_FLAG_GET(filter))) register_plugin_cases(registered);
  register_placeholders(registered);
}

int run_tests() {
  const int failed = RUN_ALL_TESTS();
  if (GTEST_FLAG_GET(list_tests)) return failed;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (all.test_to_run_count() == 0) {
    const std::string filter = GTEST_FLAG_GET(filter);
    std::fprintf(stderr, "qcts_tests: no test matches %s\n",
                 filter == kNoTest ? "--only" : ("--gtest_filter=" + filter).c_str());
    return 3;
  }
  if (failed == 0 && all.successful_test_count() == 0) {
    std::fprintf(stderr, "qcts_tests: every test was skipped\n");
    return 3;
  }
  return failed;
}

}  // namespace
}  // namespace qcts

int main(int argc, char** argv) {
  bool help = false;
  for (int i = 1; i < argc; ++i)
    help = help || std::string(argv[i]) == "--help" || std::string(argv[i]) == "-h";
  testing::InitGoogleTest(&argc, argv);
  if (help) {
    std::printf(
        "\nqcts_tests options (each may be repeated):\n"
        "  --fixtures DIR    a folder of extra goldens, with a manifest.json\n"
        "  --only PATTERN    run only unit tests whose name or file path has PATTERN as a part (or as a "
        "whole, if it has * or ?)\n");
    return RUN_ALL_TESTS();
  }
  try {
    qcts::RegisteredCases registered;
    const std::vector<std::string> only = qcts::read_own_flags(argc, argv, registered);
    if (only.empty())
      qcts::register_cases(registered);
    else
      qcts::select_tests(only);
    return qcts::run_tests();
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "qcts_tests: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qcts_tests: %s\n", error.what());
    return 5;
  }
}
