// SPDX-License-Identifier: BSD-3-Clause
// Plants faults in a provider that runs programs: each must be caught, and the faultless provider must pass.
// The program is the golden "captured": (x + (-1, 0, 1)) * (2, 0.5, 4) in float64.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/report.h"
#include "suites/base/paths.h"
#include "suites/judge/judge.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

enum class Plant {
  none,
  element,
  dtype,
  shape,
  nothing,
  late,
  other_file,
  flipped,
  no_file,
  declines,
  throws
};
Plant planted = Plant::none;
constexpr const char* kOtherProgram = "control_flow_scripted";

const Fixtures& fixtures() {
  static const Fixtures all = load_fixtures(fixtures_folder());
  return all;
}

const Golden& golden(const std::string& name) {
  for (const Golden& candidate : fixtures().goldens)
    if (candidate.id == "torch_2_13_0/torchscript/" + name) return candidate;
  throw std::runtime_error("no golden " + name);
}

qcts_status say(const char* text, qcts_status status, char* why, size_t why_size) {
  std::snprintf(why, why_size, "%s", text);
  return status;
}

qcts_status save(const char* input, const char* output, char* why, size_t why_size) {
  if (planted == Plant::declines) return say("not here", QCTS_UNSUPPORTED, why, why_size);
  if (planted == Plant::no_file) return QCTS_OK;
  fs::copy_file(planted == Plant::other_file ? golden(kOtherProgram).file : fs::path(input), output);
  if (planted == Plant::flipped) {
    std::fstream file(output, std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const size_t at =
        bytes.find(std::string("\x00\x00\x80\xbf", 4));  // -1, the first element of CONSTANTS.c0
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\1');
  }
  return QCTS_OK;
}

qcts_status run_captured(const qcts_program_call* call, char*, size_t) {
  if (planted == Plant::throws) throw std::runtime_error("out of luck");
  const bool original = fs::path(call->path).filename() == "given.pt";
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  double y[3] = {(x[0] - 1.0) * 2, x[1] * 0.5, (x[2] + 1.0) * 4};
  if (planted == Plant::element || (planted == Plant::late && !original)) y[2] += 1;
  qcts_plane plane = {};
  plane.struct_size = sizeof plane;
  plane.dtype = planted == Plant::dtype ? QCTS_I64 : QCTS_F64;
  plane.data = y;
  plane.ndim = 1;
  plane.shape[0] = planted == Plant::shape ? 2 : 3;
  plane.stride_bytes[0] = 8;
  if (planted != Plant::nothing) call->emit(call->context, &plane);
  return QCTS_OK;
}

Verdict judged(Plant plant, bool with_runner = true) {
  planted = plant;
  Implementation provider;
  provider.provider = "fake";
  provider.files = {save, run_captured};
  Case c;
  c.id = {Kind::round_trip, Op::file, "plain", "captured"};
  c.question = FileQuestion{&golden("captured")};
  if (with_runner) c.runner = &provider;
  const ScratchFolder scratch;
  JudgeContext context;
  context.scratch = scratch.path();
  return judge(c, context);
}

struct PlantedFault {
  const char* name;
  Plant plant;
  Status status;
  const char* reason;
};
class ProgramFault : public testing::TestWithParam<PlantedFault> {};

TEST_P(ProgramFault, GetsItsVerdict) {
  const Verdict verdict = judged(GetParam().plant);
  EXPECT_EQ(verdict.status, GetParam().status) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr(GetParam().reason));
  EXPECT_EQ(verdict.provider + "_" + verdict.variant, "fake_program");
}

INSTANTIATE_TEST_SUITE_P(
    Planted, ProgramFault,
    testing::Values(
        PlantedFault{"none", Plant::none, Status::pass, ""},
        PlantedFault{"element", Plant::element, Status::fail, "differs from its producer's record"},
        PlantedFault{"dtype", Plant::dtype, Status::fail, "differs from its producer's record"},
        PlantedFault{"shape", Plant::shape, Status::fail, "differs from its producer's record"},
        PlantedFault{"nothing", Plant::nothing, Status::fail, "differs from its producer's record"},
        PlantedFault{"late", Plant::late, Status::fail, "output differs after load and save"},
        PlantedFault{"other_file", Plant::other_file, Status::fail, "contents differ after load and save"},
        PlantedFault{"flipped", Plant::flipped, Status::fail, "CrcMismatch"},
        PlantedFault{"no_file", Plant::no_file, Status::fail, "left no file"},
        PlantedFault{"declines", Plant::declines, Status::not_supported, "not here"},
        PlantedFault{"throws", Plant::throws, Status::fail, "threw across the C ABI: out of luck"}),
    [](const auto& info) { return info.param.name; });

TEST(Program, WithoutAProviderItIsNotSupportedAndSaysWhy) {
  const Verdict verdict = judged(Plant::none, false);
  EXPECT_EQ(verdict.status, Status::not_supported);
  EXPECT_THAT(verdict.reason, HasSubstr("QCTS_TORCH"));
  EXPECT_EQ(verdict.provider, kAbsentRunner);
  EXPECT_FALSE(blocks_conformance(verdict, false));
}

}  // namespace
}  // namespace qcts
