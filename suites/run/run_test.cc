// SPDX-License-Identifier: BSD-3-Clause
// Tests `qcts run` as a user sees it: the program is started on providers with a planted fault. The fault
// fails its own case only, the others are judged, the exit code is right, and a typo never yields a pass.
#include "suites/run/run.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "suites/base/paths.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/record/run_record.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;

struct Result {
  int exit_code = -1;
  std::string out, err;
  Json report;  // null when none was written
  Json cases;   // the verdicts of the record, with their full ids
  const Json* find(const std::string& part) const {
    for (const Json& c : cases)
      if (c["id"].get<std::string>().find(part) != std::string::npos) return &c;
    return nullptr;
  }
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class RunProgram : public testing::Test {
 protected:
  Result run(const std::string& arguments) {
    const fs::path out = scratch_.path() / "out";
    const std::string command =
        "env -u GTEST_SHARD_INDEX -u GTEST_TOTAL_SHARDS " + shell_word(program_path().string()) +
        " run --no-progress --out " + shell_word(out.string()) + " " + arguments + " >" +
        (scratch_.path() / "stdout").string() + " 2>" + (scratch_.path() / "stderr").string();
    const int status = std::system(command.c_str());
    Result result;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    result.out = text_of(scratch_.path() / "stdout");
    result.err = text_of(scratch_.path() / "stderr");
    if (!fs::exists(out / "report.json")) return result;
    result.report = Json::parse(text_of(out / "report.json"));
    std::map<std::string, Json> sorted;
    for (const Verdict& verdict : read_run_record(record_of(out)).verdicts) {
      Json& json = sorted[verdict.full_id()];
      json = to_json(verdict);
      json["id"] = verdict.full_id();
    }
    for (auto& [id, json] : sorted) result.cases.push_back(std::move(json));
    return result;
  }

  static std::string faulty(const std::string& fault) {
    const fs::path libraries = executable_path().parent_path().parent_path() / "lib" / "selftest";
    return (libraries / ("qcts_faulty_" + fault + ".so")).string();
  }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(scratch_.path() / name) << text;
    return scratch_.path() / name;
  }

  ScratchFolder scratch_;
};

// Three float32 inputs of dequantize in the order in which they are judged: one before the fault, the one
// with the fault (k = 13), one after it.
const std::string kThreeCases =
    " --kind numerics --filter 'numerics.dequantize/int8_row/noise_n*_f32' "
    "--filter numerics.dequantize/int8_row/torchao_0_18_0_odd_17x64_f32_0";

TEST_F(RunProgram, AProviderWithoutAFaultPasses) {
  const Result result = run("--provider " + faulty("none") + kThreeCases);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ASSERT_EQ(result.cases.size(), 3u);
  EXPECT_EQ(result.cases[1]["case_id"], "numerics.dequantize/int8_row/noise_n7_k13_f32")
      << "the other tests count on one case before the struck one and one after it";
  EXPECT_FALSE(result.report["conformance"]["conformant"].get<bool>())
      << "three cases are not the mustpass list";
}

struct Planted {
  const char *fault, *status, *reason;
};
class PlantedProviderFault : public RunProgram, public testing::WithParamInterface<Planted> {};

TEST_P(PlantedProviderFault, CostsOneCaseAndTheRunGoesOn) {
  const Planted planted = GetParam();
  const fs::path plan = write(
      "plan.json", R"({"description": "", "kinds": ["numerics"], "all_variants": true, "all_inputs": true,
    "case_timeout_s": 6, "latency_budget_s": 0, "latency_m": [], "latency_shapes": []})");
  const Result result = run("--jobs 1 --memory-limit 300 --plan " + plan.string() + " --provider " +
                            faulty(planted.fault) + kThreeCases);
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  ASSERT_EQ(result.cases.size(), 3u);
  const Json& struck = *result.find("k13");
  EXPECT_EQ(struck["status"], planted.status) << struck.dump();
  EXPECT_THAT(struck["reason"].get<std::string>() + struck.value("mismatch", Json()).dump(),
              HasSubstr(planted.reason));
  EXPECT_THAT(struck["rerun"].get<std::string>(),
              testing::AllOf(HasSubstr(struck["id"]), HasSubstr(path_word(faulty(planted.fault)))));
  const bool all_struck = std::string(planted.fault) == "sets_ftz_at_load";
  for (const Json& c : result.cases)
    EXPECT_EQ(c["status"], c["id"] == struck["id"] ? planted.status
                           : all_struck            ? "fail"
                                                   : "pass")
        << c.dump();
}

// A sanitizer's runtime takes away the memory limit.
#if !defined(__SANITIZE_ADDRESS__)
INSTANTIATE_TEST_SUITE_P(RunWithLimit, PlantedProviderFault,
                         testing::Values(Planted{"leaks", "resource", "memory limit of 300 MiB"}),
                         [](const auto& info) { return std::string(info.param.fault); });
#endif

INSTANTIATE_TEST_SUITE_P(
    Run, PlantedProviderFault,
    testing::Values(Planted{"wrong", "fail", "column 12"}, Planted{"aborts", "crash", "SIGABRT"},
                    Planted{"hangs", "timeout", "no verdict within 6 s"},
                    Planted{"aborts_when_asked", "crash", "SIGABRT"},
                    Planted{"exits", "crash", "exit code 0"}, Planted{"sets_ftz", "fail", "flush to zero"},
                    Planted{"throws", "fail", "threw across the C ABI"},
                    Planted{"writes_to_fds", "crash", "answered out of turn"},
                    Planted{"late", "timeout", "no verdict within 6 s"},
                    Planted{"writes_past_end", "fail", "wrote outside its buffers: y"},
                    Planted{"writes_input", "fail", "wrote into its input qdata"},
                    Planted{"writes_far", "fail", "read or wrote past the end of y, at +"},
                    Planted{"reads_past_end", "fail", "read past the end of qdata, at +0"},
                    Planted{"keeps_child", "fail", "left a child process running"},
                    Planted{"sets_ftz_at_load", "fail", "loading the provider"}),
    [](const auto& info) { return std::string(info.param.fault); });

// Faults that change no answer to a problem that is asked by itself.
class PlantedSideEffect : public RunProgram, public testing::WithParamInterface<Planted> {};
TEST_P(PlantedSideEffect, IsSeenInDeterminism) {
  const Result result = run("--provider " + faulty(GetParam().fault) +
                            " --filter determinism.dequantize/int8_row/noise_n37_k216_f32 --plan full");
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  ASSERT_EQ(result.cases.size(), 1u);
  EXPECT_EQ(result.cases[0]["status"], GetParam().status);
  EXPECT_THAT(result.cases[0]["reason"].get<std::string>(), HasSubstr(GetParam().reason));
}
INSTANTIATE_TEST_SUITE_P(
    Run, PlantedSideEffect,
    testing::Values(Planted{"keeps_memory", "fail", "keeps memory: "},
                    Planted{"keeps_descriptor", "fail", "leaves descriptors open: "},
                    Planted{"says_much", "fail", "writes to its standard output"},
                    Planted{"starts_threads", "fail", "starts threads where 1 was asked"},
                    Planted{"asks_environment", "fail", "starts threads where 1 was asked"},
                    Planted{"keeps_rows", "fail", "keeps memory: "},
                    Planted{"asks_math_mode", "fail",
                            "wrong with ONEDNN_DEFAULT_FPMATH_MODE=BF16 in the environment, right without"},
                    Planted{"wraps_counter", "fail", "wrong 256 calls after a problem of as many rows"},
                    Planted{"errs_once_in_512", "fail", "and right in the ones before"},
                    Planted{"keeps_operation", "fail",
                            "right in a separate process, wrong after a problem of the operation linear"}),
    [](const auto& info) { return std::string(info.param.fault); });

TEST_F(RunProgram, APoolThatRestsIsNoSideEffect) {
  const Result result = run("--provider " + faulty("keeps_pool") +
                            " --filter determinism.dequantize/int8_row/noise_n37_k216_f32 --plan full");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// A library that computes nothing, and makes its process write "pass" for "fail".
TEST_F(RunProgram, AProviderCannotForgeItsVerdicts) {
  const Result result = run("--provider " + faulty("patches_host") + kThreeCases);
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  ASSERT_EQ(result.cases.size(), 3u);
  for (const Json& c : result.cases) EXPECT_EQ(c["status"], "fail") << c.dump();
}

// Without limits the verdicts are the same, and the run says that they count for less.
TEST_F(RunProgram, WithoutIsolationConformanceIsNotStated) {
  const Result result = run("--isolation off --provider " + faulty("wrong") + kThreeCases);
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  ASSERT_NE(result.find("k13"), nullptr);
  EXPECT_EQ((*result.find("k13"))["status"], "fail");
  EXPECT_THAT((*result.find("k13"))["rerun"].get<std::string>(), HasSubstr("--isolation off"));
  EXPECT_THAT(result.out, HasSubstr("NOT ISOLATED"));
  EXPECT_THAT(result.report["providers"][0]["isolation"].get<std::string>(),
              testing::StartsWith("not isolated, as was asked: it can "));
}

// Faults of a provider's load_save. A correct one returns the golden with its payload, refuses the malformed
// file and leaves no file.
struct Loader {
  const char *fault, *golden_status, *malformed_status, *reason;
};
class PlantedLoaderFault : public RunProgram, public testing::WithParamInterface<Loader> {};

TEST_P(PlantedLoaderFault, IsSeenInItsFiles) {
  const Loader planted = GetParam();
  const Result result = run("--jobs 1 --memory-limit 300 --provider " + faulty(planted.fault) +
                            " --filter round_trip.file/int8_row/torchao_0_18_0_toy_64_32_64"
                            " --filter reject.file/any/z01_truncated_500");
  ASSERT_FALSE(result.report.is_null()) << result.err;
  ASSERT_EQ(result.cases.size(), 2u);
  const Json &golden = *result.find("round_trip"), &malformed = *result.find("reject");
  EXPECT_EQ(golden["id"], "round_trip.file/int8_row/torchao_0_18_0_toy_64_32_64/faulty_loadsave");
  EXPECT_EQ(golden["status"], planted.golden_status) << golden.dump();
  EXPECT_EQ(malformed["status"], planted.malformed_status) << malformed.dump();
  EXPECT_THAT(golden["reason"].get<std::string>() + malformed["reason"].get<std::string>(),
              HasSubstr(planted.reason));
}

INSTANTIATE_TEST_SUITE_P(
    Run, PlantedLoaderFault,
    testing::Values(Loader{"copies_unread", "pass", "fail", "load_save() accepted it"},
                    Loader{"refuses_all", "fail", "pass", "a planted refusal"},
                    Loader{"keeps_failed_output", "fail", "fail", "but left a file"},
                    Loader{"writes_no_file", "fail", "fail", "left no file"},
                    Loader{"flips_bit", "fail", "fail", "refuses the file that load_save() wrote"},
                    Loader{"changes_input", "fail", "fail", "changed the file"},
                    Loader{"supports_no_file", "not_supported", "not_supported", "not one of its containers"},
                    Loader{"aborts_on_file", "crash", "crash", "SIGABRT"}),
    [](const auto& info) { return std::string(info.param.fault); });

TEST_F(RunProgram, TheLastWordsOfACrashAreKept) {
  const Result result = run("--provider " + faulty("aborts") + kThreeCases);
  ASSERT_NE(result.find("k13"), nullptr) << result.err;
  EXPECT_THAT((*result.find("k13"))["reason"].get<std::string>(), HasSubstr("a planted abort"));
}

TEST_F(RunProgram, AllNotSupportedProvesNothing) {
  const Result result = run("--provider " + faulty("declines") + kThreeCases);
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_EQ(result.report["groups"][0]["reason"], "only float32");
}

struct Wrong {
  const char *name, *arguments;
  int exit_code;
  const char* hint;
};
class WrongWord : public RunProgram, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongWord, EndsTheRunWithTheNearestRightOne) {
  const Result result = run(GetParam().arguments);
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.err;
  EXPECT_THAT(result.err, HasSubstr(GetParam().hint));
  EXPECT_TRUE(result.report.is_null()) << "a run that judged nothing must leave no report";
}

INSTANTIATE_TEST_SUITE_P(
    Run, WrongWord,
    testing::Values(Wrong{"filter", "--provider builtin --filter numerics.dequantise", 3,
                          "numerics.dequantize"},
                    Wrong{"kind", "--kind numeric", 2, "'numerics'"},
                    Wrong{"provider", "--provider buitlin", 2, "'builtin'"},
                    Wrong{"scheme", "--scheme int8_rov", 2, "'int8_row'"},
                    Wrong{"plan", "--plan defualt", 2, "'default'"},
                    Wrong{"variant", "--provider builtin --variant scalr", 2, "'scalar'"},
                    Wrong{"device_word", "--device cdua", 2, "'cuda'"},
                    Wrong{"device", "--device cuda", 3, "no device cuda:0: no CUDA driver"},
                    Wrong{"library", "--provider ./none.so", 2, "./none.so"},
                    Wrong{"last_plan_counts", "--plan quick --plan defualt", 2, "'default'"},
                    Wrong{"no_program", "--provider /etc/passwd", 2, "/etc/passwd is not a provider"},
                    Wrong{"shard", "--shard 3/2", 2, "3/2"},
                    Wrong{"empty_shard",
                          "--provider builtin --filter "
                          "numerics.dequantize/int8_row/noise_n7_k13_f32/builtin_scalar --shard 2/2",
                          3, "no case was selected"},
                    Wrong{"fixtures", "--fixtures /nonexistent", 2, "manifest.json"}),
    [](const auto& info) { return std::string(info.param.name); });

// scripts/run puts its own --out and --plan before the user's.
TEST_F(RunProgram, AnOptionGivenTwiceCountsAsGivenLast) {
  const fs::path last = scratch_.path() / "last";
  const Result result = run("--provider " + faulty("none") + " --out " + last.string() + kThreeCases);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(last / "report.json"));
  EXPECT_TRUE(result.report.is_null()) << "the first folder got a report";
}

// A fault in a user's fixtures is not the suite's.
TEST_F(RunProgram, ADamagedManifestOfFixturesIsWrongUsage) {
  write("manifest.json", R"({"schema": 7})");
  const Result result = run("--fixtures " + scratch_.path().string());
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("schema"));
}

TEST_F(RunProgram, AnExactIdTakesOnlyItself) {
  const Result result = run(
      "--provider builtin --list --filter numerics.linear/int8_row/noise_m1_n37_k216_bf16/builtin_scalar");
  EXPECT_EQ(result.out, "numerics.linear/int8_row/noise_m1_n37_k216_bf16/builtin_scalar\n") << result.err;
}

TEST_F(RunProgram, AVariantThatCannotRunIsAnError) {
  ::setenv("QCTS_CPU_MASK", "sse4_2", 1);
  const Result result = run("--provider builtin --variant avx512");
  ::unsetenv("QCTS_CPU_MASK");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("avx512 cannot run"));
}

TEST(Mustpass, ListIsWhatThePlanExpandsTo) {
  const fs::path root = repository_root();
  const std::vector<std::string> listed = load_mustpass(root / "suites" / "mustpass" / "default.txt");
  EXPECT_EQ(listed, mustpass_ids(kCompletePlan, {root / "fixtures"}))
      << "made by build/release/bin/qcts list --names; CONTRIBUTING.md has the command";
}

TEST(Mustpass, FloorCoversEveryOperationAndAsksForNothingImpossible) {
  const fs::path folder = repository_root() / "suites" / "mustpass";
  std::map<std::pair<std::string, Op>, uint64_t> listed;
  for (const std::string& id : load_mustpass(folder / "default.txt")) {
    const CaseId parts = parse_case_id(id).value();
    ++listed[{parts.scheme, parts.op}];
  }
  for (const FloorEntry& entry : load_floor(folder / "floor.json")) {
    const auto found = listed.find({entry.scheme, entry.op});
    ASSERT_NE(found, listed.end()) << entry.scheme << " " << op_name(entry.op);
    EXPECT_LE(entry.floor, found->second) << entry.scheme << " " << op_name(entry.op);
    EXPECT_GT(entry.floor, 0u) << entry.scheme << " " << op_name(entry.op);
    listed.erase(found);
  }
  EXPECT_TRUE(listed.empty()) << listed.begin()->first.first << " " << op_name(listed.begin()->first.second)
                              << " has no floor";
}

}  // namespace
}  // namespace qcts
