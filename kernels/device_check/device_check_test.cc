// SPDX-License-Identifier: BSD-3-Clause
// Tests qcts_device_check without a GPU: its kernels run in the executor, its comparison finds what differs,
// its inputs tell wrong sums from right ones, and a side that fails, crashes or hangs is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/device_check/compare.h"
#include "kernels/device_check/program.h"
#include "kernels/emulated/simt_sums.h"

namespace qcts::device_check {
namespace {

using testing::HasSubstr;

struct Ran {
  int code;
  std::string out, err;
  nlohmann::json json;
};
Ran run(const Backend& backend, std::vector<std::string> arguments) {
  const std::string file = testing::TempDir() + "device_check_" + std::to_string(::getpid()) + ".json";
  std::filesystem::remove(file);
  arguments.insert(arguments.begin(), "qcts_device_check");
  arguments.insert(arguments.end(), {"--out", file, "--processes", "2"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.code = program(static_cast<int>(argv.size()), argv.data(), backend);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  if (std::ifstream written(file); written) ran.json = nlohmann::json::parse(written);
  return ran;
}
// Returns the results of the checks that a filter chose, by name. Each check ran a few cases.
std::map<std::string, nlohmann::json> results(const Ran& ran) {
  std::map<std::string, nlohmann::json> all;
  for (const auto& check : ran.json.value("checks", nlohmann::json::array())) all[check["name"]] = check;
  return all;
}

// Returns the outputs of the first cases of a check.
std::vector<uint32_t> outputs(const Check& check, uint32_t number, int64_t count,
                              simt::Architecture architecture, uint32_t schedule) {
  struct alignas(256) Page {
    uint8_t bytes[256];
  };
  const auto pages = [](size_t words) { return std::vector<Page>(words / 64 + 1); };
  std::vector<Page> common = pages(check.common_words), in = pages(check.in_words * count),
                    out = pages(check.out_words * count);
  std::memset(out.data(), 0xA5, out.size() * sizeof(Page));
  if (check.fill_common != nullptr) {
    Random random(1, number, 0);
    check.fill_common(random, reinterpret_cast<uint32_t*>(common.data()));
  }
  for (int64_t i = 0; i < count; ++i) {
    Random random(1, number, static_cast<uint64_t>(i) + 1);
    check.fill(random, i, reinterpret_cast<uint32_t*>(in.data()) + i * check.in_words);
  }
  const Cases cases = {common.data()->bytes, in.data()->bytes, out.data()->bytes, count};
  EXPECT_EQ(execute(check, cases, architecture, schedule), "") << check.name;
  const auto* words = reinterpret_cast<const uint32_t*>(out.data());
  return {words, words + check.out_words * count};
}

TEST(DeviceCheck, KernelsWriteAllOutputsTheSameUnderEverySchedule) {
  const std::vector<Check> checks = on_executor::checks();
  for (uint32_t number = 0; number < checks.size(); ++number) {
    const int64_t count = checks[number].out_words < 1024 ? 9 : 2;
    const auto first = outputs(checks[number], number, count, simt::Architecture::hopper, 0);
    EXPECT_EQ(std::ranges::count(first, 0xA5A5A5A5u), 0) << checks[number].name;
    for (uint32_t schedule = 1; schedule < simt::kSchedules; ++schedule)
      EXPECT_EQ(outputs(checks[number], number, count, simt::Architecture::hopper, schedule), first)
          << checks[number].name << ", schedule " << schedule;
  }
}

TEST(DeviceCheck, HasNamesOfItsOwnForEachCheck) {
  std::map<std::string, int> seen;
  for (const Check& check : on_executor::checks()) EXPECT_EQ(++seen[check.name], 1) << check.name;
}

TEST(DeviceCheck, InputsTellHopperFromAmpere) {
  const std::vector<Check> checks = on_executor::checks();
  for (uint32_t number = 0; number < checks.size(); ++number) {
    if (checks[number].name != "multiply_bf16" && checks[number].name != "multiply_f16") continue;
    const auto hopper = outputs(checks[number], number, 50, simt::Architecture::hopper, 0),
               ampere = outputs(checks[number], number, 50, simt::Architecture::ampere, 0);
    EXPECT_NE(hopper, ampere) << checks[number].name;
  }
}

TEST(DeviceCheck, InputsTellWhetherZeroFactorsHaveAnExponent) {
  struct Case {
    Operand type;
    const simt::FactorType* factors;
    simt::SumModel model;
  };
  for (const Case& c : {Case{Operand::bf16, &simt::kBf16, simt::kHopperSums16},
                        Case{Operand::e4m3, &simt::kE4m3, simt::kHopperWideSums8}}) {
    simt::SumModel other = c.model;
    other.zeros_count = !other.zeros_count;
    int changed = 0;
    for (uint64_t tile = 0; tile < 2000; ++tile) {
      Random random(1, 0, tile);
      uint32_t words[2 * 8 + 1];
      fill_beside_zeros(random, c.type, 1, 1, 32, words);
      std::vector<simt::Factor> of[2];
      for (uint32_t at = 0; at < 64; at += bytes_of(c.type)) {
        uint32_t bits = 0;
        std::memcpy(&bits, reinterpret_cast<const uint8_t*>(words) + at, bytes_of(c.type));
        of[at / 32].push_back(c.factors->decode(bits));
      }
      const auto sum = [&](const simt::SumModel& by) {
        return simt::fused_dot(by, *c.factors, of[0].data(), of[1].data(), static_cast<int>(of[0].size()),
                               __builtin_bit_cast(float, words[16]));
      };
      changed += sum(c.model) != sum(other) ? 1 : 0;
    }
    EXPECT_GT(changed, c.type == Operand::bf16 ? 300 : 20);
  }
}

// Counts the sums that inputs make with a model: all of them, those that are neither 0, infinite nor NaN, and
// those that another model changes.
struct Told {
  int all = 0, finite = 0, changed = 0;
};
Told told(Operand type, const simt::FactorType& factors, const simt::SumModel& model,
          const simt::SumModel& other) {
  Told found;
  for (uint64_t tile = 0; tile < 4000; ++tile) {
    Random random(1, 0, tile);
    const Style style = any_style(random);
    uint32_t words[2][8];
    std::vector<simt::Factor> of[2];
    for (int side = 0; side < 2; ++side) {
      fill_row(random, style, type, side == 0, words[side], sizeof words[side]);
      for (uint32_t at = 0; at < sizeof words[side]; at += bytes_of(type)) {
        uint32_t bits = 0;
        std::memcpy(&bits, reinterpret_cast<const uint8_t*>(words[side]) + at, bytes_of(type));
        of[side].push_back(factors.decode(bits));
      }
    }
    const auto start = __builtin_bit_cast(float, any_start(random, style, type));
    const auto sum = [&](const simt::SumModel& by) {
      return __builtin_bit_cast(uint32_t, simt::fused_dot(by, factors, of[0].data(), of[1].data(),
                                                          static_cast<int>(of[0].size()), start));
    };
    const uint32_t right = sum(model);
    ++found.all;
    if ((right & 0x7FFFFFFF) != 0 && (right & 0x7F800000) != 0x7F800000) ++found.finite;
    if (right != sum(other)) ++found.changed;
  }
  return found;
}

TEST(DeviceCheck, InputsTellEachPropertyOfASum) {
  struct Case {
    Operand type;
    const simt::FactorType* factors;
    simt::SumModel model;
  };
  for (const Case& c : {Case{Operand::bf16, &simt::kBf16, simt::kHopperSums16},
                        Case{Operand::f16, &simt::kF16, simt::kHopperSums16},
                        Case{Operand::bf16, &simt::kBf16, simt::kAmpereSums16},
                        Case{Operand::f16, &simt::kF16, simt::kAmpereSums16},
                        Case{Operand::e4m3, &simt::kE4m3, simt::kHopperWideSums8}}) {
    const auto [fraction, result, terms, least, zeros] = c.model;
    for (const simt::SumModel& other : {simt::SumModel{fraction - 1, result, terms, least, zeros},
                                        simt::SumModel{fraction + 1, result, terms, least, zeros},
                                        simt::SumModel{fraction, result - 1, terms, least, zeros},
                                        simt::SumModel{fraction, result, terms / 2, least, zeros}}) {
      const Told found = told(c.type, *c.factors, c.model, other);
      EXPECT_GT(found.changed, 20) << fraction << " bits; other: " << other.fraction_bits << ", "
                                   << other.result_fraction_bits << ", " << other.terms;
      EXPECT_GT(2 * found.finite, found.all) << fraction << " bits";
    }
  }
}

Comparison compared(Output output, uint32_t executor, uint32_t device) {
  Check check = {};
  check.in_words = check.out_words = 1;
  check.output = output;
  const uint32_t in = 0x1234;
  Comparison comparison;
  compare(check, 7, 1, &in, &executor, &device, &comparison);
  return comparison;
}

TEST(DeviceCheck, ComparesBits) {
  for (const Output output : {Output::bits, Output::f32, Output::f16x2, Output::bf16x2, Output::arithmetic}) {
    EXPECT_EQ(compared(output, 0x80000000, 0x80000000).different, 0);
    const Comparison signs = compared(output, 0x80000000, 0);
    EXPECT_EQ(signs.different, 1) << "zeros of other signs";
    EXPECT_EQ(signs.nan_only, 0);
    ASSERT_EQ(signs.examples.size(), 1u);
    EXPECT_EQ(signs.examples[0].index, 7);
    EXPECT_EQ(signs.examples[0].operands, "in=00001234");
  }
}

TEST(DeviceCheck, TellsNanApartAndForgivesItInArithmeticAlone) {
  EXPECT_EQ(compared(Output::bits, 0x7FC00000, 0x7FFFFFFF).nan_only, 0);
  EXPECT_EQ(compared(Output::f32, 0x7FC00000, 0x7FFFFFFF).nan_only, 1);
  EXPECT_EQ(compared(Output::f32, 0x7FC00000, 0x7F800000).nan_only, 0) << "one is infinite";
  EXPECT_EQ(compared(Output::f16x2, 0x7E003C00, 0x7FFF3C00).nan_only, 1);
  EXPECT_EQ(compared(Output::f16x2, 0x7E003C00, 0x7FFF3C01).nan_only, 0) << "the lower half differs too";
  EXPECT_EQ(compared(Output::bf16x2, 0x7E003F80, 0x7FFF3F80).nan_only, 0) << "0x7E00 is finite";
  const Comparison forgiven = compared(Output::arithmetic, 0xFFC00000, 0x7FFFFFFF);
  EXPECT_EQ(forgiven.different, 0);
  EXPECT_EQ(forgiven.nan_bits, 1);
  EXPECT_EQ(compared(Output::arithmetic, 0xFFC00000, 0x7F800000).different, 1);
}

TEST(DeviceCheck, EndsWith0IfAllIsEqual) {
  const Ran ran = run(kExecutorAgain, {"--max-cases", "3", "--tiles", "20"});
  EXPECT_EQ(ran.code, kEqual) << ran.out << ran.err;
  const std::vector<Check> checks = on_executor::checks();
  ASSERT_EQ(results(ran).size(), checks.size());
  for (const auto& [name, result] : results(ran)) {
    EXPECT_EQ(result["result"], "equal") << name;
    EXPECT_GT(result["cases"], 0) << name;
  }
}

TEST(DeviceCheck, EndsWith1AndShowsTheOperandsIfABitDiffers) {
  for (const char* name : {"fmaf", "copy_async", "multiply_f16", "wgmma_e4m3: N = 32, a in registers"}) {
    const Ran ran =
        run(kExecutorAgain, {"--max-cases", "3", "--tiles", "20", "--filter", name, "--plant", name});
    EXPECT_EQ(ran.code, kDifferent) << name;
    EXPECT_THAT(ran.out, HasSubstr("DIFFERENT: 1,")) << name;
    const nlohmann::json result = results(ran)[name];
    EXPECT_EQ(result["result"], "different") << name;
    EXPECT_EQ(result["different_words"], 1) << name;
    ASSERT_EQ(result["examples"].size(), 1u) << name;
    const nlohmann::json& example = result["examples"][0];
    EXPECT_EQ(example["case"], 0);
    EXPECT_NE(example["executor"], example["device"]);
    EXPECT_THAT(example["operands"].get<std::string>(), HasSubstr("=")) << name;
  }
}

std::string open_as(Machine* machine, int32_t capability) {
  *machine = {};
  std::strcpy(machine->name, "a test");
  machine->capability = capability;
  return "";
}
std::string execute_on_hopper(const Check& check, const Cases& cases) {
  return execute(check, cases, simt::Architecture::hopper, 0);
}
std::string execute_on_ampere(const Check& check, const Cases& cases) {
  return execute(check, cases, simt::Architecture::ampere, 0);
}
std::string open_hopper(Machine* machine) { return open_as(machine, 90); }

TEST(DeviceCheck, EndsWith3AndTheReasonWithoutAGpu) {
  const Backend none = {"GPU", on_executor::checks,
                        [](Machine*) { return std::string("there is no CUDA driver"); }, execute_on_hopper};
  Ran ran = run(none, {});
  EXPECT_EQ(ran.code, kNoDevice);
  EXPECT_THAT(ran.err, HasSubstr("no GPU: there is no CUDA driver"));
  EXPECT_TRUE(ran.json.is_null());
  const Backend unknown = {"GPU", on_executor::checks, [](Machine* machine) { return open_as(machine, 120); },
                           execute_on_hopper};
  ran = run(unknown, {});
  EXPECT_EQ(ran.code, kNoDevice);
  EXPECT_THAT(ran.err, HasSubstr("a test has 12.0"));
}

TEST(DeviceCheck, AsksTheExecutorForTheSumsOfTheMachine) {
  const std::vector<std::string> few = {"--tiles", "60", "--filter", "multiply_bf16", "--filter", "wgmma_s8"};
  const auto open_ampere = [](Machine* machine) { return open_as(machine, 86); };
  Ran ran = run({"GPU", on_executor::checks, open_ampere, execute_on_ampere}, few);
  EXPECT_EQ(ran.code, kEqual) << ran.out;
  for (const auto& [name, result] : results(ran))
    EXPECT_EQ(result["result"], name == "multiply_bf16" ? "equal" : "not_run") << name;
  ran = run({"GPU", on_executor::checks, open_ampere, execute_on_hopper}, few);
  EXPECT_EQ(ran.code, kDifferent);
  ran = run({"GPU", on_executor::checks, open_hopper, execute_on_ampere},
            {"--tiles", "60", "--filter", "multiply_bf16"});
  EXPECT_EQ(ran.code, kDifferent);
}

// The program names the check that fails and the reason, and runs the next check.
TEST(DeviceCheck, NamesChecksThatFailCrashOrHang) {
  Backend broken = {"GPU", on_executor::checks, open_hopper, [](const Check& check, const Cases& cases) {
                      if (check.name == "fmaf") std::abort();
                      if (check.name == "fmaxf") ::sleep(60);
                      if (check.name == "fminf") return std::string("CUDA: misaligned address");
                      return execute_on_hopper(check, cases);
                    }};
  broken.run_seconds = 2;
  const Ran ran =
      run(broken, {"--max-cases", "50", "--filter", "fma", "--filter", "fmin", "--filter", "fabs"});
  EXPECT_EQ(ran.code, kDifferent);
  auto by_name = results(ran);
  EXPECT_THAT(by_name["fmaf"]["why"].get<std::string>(), HasSubstr("ended by signal Aborted"));
  EXPECT_THAT(by_name["fmaxf"]["why"].get<std::string>(), HasSubstr("no answer within 2 s"));
  EXPECT_EQ(by_name["fminf"]["why"], "CUDA: misaligned address");
  for (const char* name : {"fma_bf16x2", "fma_f16x2", "fabsf"})
    EXPECT_EQ(by_name[name]["result"], "equal") << name;
  EXPECT_THAT(ran.out, HasSubstr("3 checks equal, 3 different or failed"));
}

TEST(DeviceCheck, RunsOnlyWhatWasNotEqualBefore) {
  const std::string earlier =
      testing::TempDir() + "device_check_earlier_" + std::to_string(::getpid()) + ".json";
  const std::vector<std::string> few = {"--max-cases", "3", "--filter", "fma", "--plant", "fmaf"};
  const Ran before = run(kExecutorAgain, few);
  EXPECT_EQ(before.code, kDifferent);
  std::ofstream(earlier) << before.json;
  const Ran ran = run(kExecutorAgain, {"--max-cases", "3", "--filter", "fma", "--filter", "fabsf",
                                       "--except-equal", earlier});
  EXPECT_EQ(ran.code, kEqual);
  std::vector<std::string> names;
  for (const auto& [name, result] : results(ran)) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"fabsf", "fmaf"}));
  const Ran nothing = run(kExecutorAgain, {"--filter", "fma_", "--except-equal", earlier});
  EXPECT_EQ(nothing.code, kUsage);
  EXPECT_THAT(nothing.err, HasSubstr("are equal in"));
  const Ran absent = run(kExecutorAgain, {"--except-equal", earlier + ".not"});
  EXPECT_EQ(absent.code, kUsage);
  EXPECT_THAT(absent.err, HasSubstr("is not a file that --out wrote"));
}

TEST(DeviceCheck, EndsWith2IfUsedWrongly) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--filter", "nothing"}, {"--plant", "fma"}, {"--tiles", "0"}, {"--unknown"}}) {
    const Ran ran = run(kExecutorAgain, arguments);
    EXPECT_EQ(ran.code, kUsage) << arguments[0];
    EXPECT_NE(ran.err, "") << arguments[0];
  }
}

// Runs the program itself. Without a GPU it says so; with one, a few cases are equal.
TEST(DeviceCheck, ProgramNamesTheMissingGpu) {
  const std::string path = build_path("bin/qcts_device_check").string();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "built without nvcc";
  const std::string errors = testing::TempDir() + "device_check_" + std::to_string(::getpid()) + ".err";
  const int status = std::system((path + " --filter and_or --max-cases 100 2>" + errors).c_str());
  std::ifstream file(errors);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (WEXITSTATUS(status) == kEqual) return;
  EXPECT_EQ(WEXITSTATUS(status), kNoDevice);
  EXPECT_THAT(text, HasSubstr("no GPU"));
}

}  // namespace
}  // namespace qcts::device_check
