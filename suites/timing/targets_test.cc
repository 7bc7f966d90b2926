// SPDX-License-Identifier: BSD-3-Clause
// Tests reading, applying and proposing targets.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "kernels/machine/machine.h"
#include "suites/base/paths.h"
#include "suites/timing/targets.h"

namespace qcts {
namespace {

TEST(Targets, WhatIsProposedIsWhatIsReadBack) {
  const nlohmann::ordered_json report = nlohmann::ordered_json::parse(R"({
    "environment": {"cpu_model": "A CPU", "cpu_family": 25, "features": ["avx2"]}, "run": {"started": "2026-01-01T00:00:00Z"},
    "latency": [
      {"op": "linear", "scheme": "int8_row", "input": "noise_m1_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "pass", "reason": "",
       "measures": {"share_of_roof": {"unit": "x", "value": 0.9, "low": 0.889, "high": 0.91}}},
      {"op": "linear", "scheme": "int8_row", "input": "noise_m16_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "pass", "reason": "",
       "measures": {"share_of_roof": {"unit": "x", "value": 0.8, "low": 0.777, "high": 0.81}}},
      {"op": "linear", "scheme": "nf4", "input": "noise_m1_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "pass", "reason": "",
       "measures": {"ratio_to_torch": {"unit": "x", "value": 70, "low": 69, "high": 71}}},
      {"op": "linear", "scheme": "nf4", "input": "noise_m16_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "pass",
       "reason": "the measurement is not to be trusted: x", "measures": {"ratio_to_torch": {"unit": "x", "value": 20, "low": 10, "high": 30}}},
      {"op": "linear", "scheme": "int8_row", "input": "noise_dyn_row_sym_m512_n64_k64_bf16_warm", "variant": "avx2", "provider": "builtin", "status": "pass",
       "reason": "", "measures": {"ratio_to_dense": {"unit": "x", "value": 2, "low": 1.9, "high": 2.1}}},
      {"op": "dequantize", "scheme": "int8_row", "input": "noise_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "pass",
       "reason": "the measurement is not to be trusted: x", "measures": {"share_of_roof": {"unit": "x", "value": 1, "low": 1, "high": 1}}},
      {"op": "dequantize", "scheme": "fp8_row", "input": "noise_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "fail",
       "reason": "wrong", "measures": {"share_of_roof": {"unit": "x", "value": 1, "low": 1, "high": 1}}},
      {"op": "dequantize", "scheme": "nf4", "input": "noise_n64_k64_bf16_cold", "variant": "avx2", "provider": "builtin", "status": "pass", "reason": "",
       "measures": {"share_of_roof": {"unit": "x", "value": 1}}},
      {"op": "linear", "scheme": "int8_row", "input": "noise_m1_n64_k64_bf16_cold", "variant": "avx2", "provider": "peer", "status": "pass",
       "reason": "", "measures": {"share_of_roof": {"unit": "x", "value": 0.2, "low": 0.1, "high": 0.3}}}
    ]})");
  const LatencyTargets proposed = propose_targets(report, "builtin", 0.1);
  ASSERT_EQ(proposed.targets.size(), 3u)
      << "no target without an interval, trust and a pass, or from another provider";
  const ScratchFolder scratch;
  std::ofstream(scratch.path() / (proposed.machine_class + ".json")) << targets_json(proposed);
  const LatencyTargets read = load_latency_targets(scratch.path(), proposed.machine_class);
  EXPECT_TRUE(read.listed);
  EXPECT_EQ(targets_json(read), targets_json(proposed));
  for (const LatencyTarget& target : read.targets) {
    if (target.scheme == "nf4") {
      EXPECT_NEAR(target.at_least, 18, 1e-9) << "it also applies to m = 16, which is not trusted";
      continue;
    }
    EXPECT_EQ(target.scheme, "int8_row");
    if (target.activation == "weight_only") {
      EXPECT_EQ(target.measure, "share_of_roof");
      EXPECT_NEAR(target.at_least, 0.69, 1e-9)
          << "the lowest lower end, minus a tenth, rounded down to two digits";
      EXPECT_EQ(target.m_max, kPrefillRows - 1);
      EXPECT_FALSE(target.warm);
    } else {
      EXPECT_EQ(target.measure, "ratio_to_dense");
      EXPECT_NEAR(target.at_least, 1.7, 1e-9);
      EXPECT_EQ(target.m_min, kPrefillRows);
      EXPECT_TRUE(target.warm);
    }
  }
  const LatencyTargets of_peer = propose_targets(report, "peer", 0.1);
  ASSERT_EQ(of_peer.targets.size(), 1u);
  const LatencyTargets both = replaced_targets(proposed, of_peer);
  std::ofstream(scratch.path() / (both.machine_class + ".json")) << targets_json(both);
  const LatencyTargets again = load_latency_targets(scratch.path(), both.machine_class);
  ASSERT_EQ(again.targets.size(), 4u);
  EXPECT_EQ(std::ranges::count(again.targets, "peer", &LatencyTarget::provider), 1);
  EXPECT_EQ(targets_json(replaced_targets(again, proposed)).at("targets").size(), 4u);
  EXPECT_THROW(propose_targets(nlohmann::ordered_json::object(), "builtin", 0.1), std::runtime_error);
}

TEST(Targets, ApplyToWhatTheyName) {
  Case c;
  c.id.op = Op::linear;
  c.scheme = find_scheme("int8_row");
  c.question = TimedQuestion{{Generator::noise, {DType::bfloat16, 64, 64}, 16, 1}};
  const Implementation builtin{"builtin", nullptr};
  c.implementation = &builtin;
  const auto target = [](const char* json) {
    const ScratchFolder scratch;
    std::ofstream(scratch.path() / "x.json")
        << R"({"schema": 1, "machine_class": "x", "targets": [)" << json << "]}";
    return load_latency_targets(scratch.path(), "x").targets.at(0);
  };
  const std::string begin =
      R"({"op": "linear", "scheme": "int8_row", "variant": "avx2", "measure": "share_of_roof", "at_least": 1)";
  EXPECT_TRUE(applies(target((begin + "}").c_str()), c, "avx2"));
  EXPECT_FALSE(applies(target((begin + "}").c_str()), c, "scalar"));
  EXPECT_TRUE(applies(target((begin + R"(, "m_least": 16, "m_most": 16})").c_str()), c, "avx2"));
  EXPECT_FALSE(applies(target((begin + R"(, "m_least": 17})").c_str()), c, "avx2"));
  EXPECT_FALSE(applies(target((begin + R"(, "m_most": 15})").c_str()), c, "avx2"));
  EXPECT_FALSE(applies(target((begin + R"(, "weights": "warm"})").c_str()), c, "avx2"));
  EXPECT_FALSE(applies(target((begin + R"(, "activation": "dyn_row_sym"})").c_str()), c, "avx2"));
  EXPECT_FALSE(applies(target((begin + R"(, "provider": "vendor"})").c_str()), c, "avx2"));
  const Implementation vendor{"vendor", nullptr};
  c.implementation = &vendor;
  EXPECT_FALSE(applies(target((begin + "}").c_str()), c, "avx2"))
      << "a port was judged by another provider's target";
  EXPECT_TRUE(applies(target((begin + R"(, "provider": "vendor"})").c_str()), c, "avx2"));
  EXPECT_THROW(target((begin + R"(, "weights": "hot"})").c_str()), std::runtime_error);
  EXPECT_THROW(target((begin + R"(, "op": "file"})").c_str()), std::runtime_error);
  EXPECT_THROW(target((begin + R"(, "m_mots": 1})").c_str()), std::runtime_error);
}

TEST(MachineClass, IsAFileName) {
  Machine machine;
  machine.cpu_model = "AMD EPYC 7B13 (64-Core)";
  machine.cpu_family = 25;
  machine.features = {"avx2"};
  EXPECT_EQ(machine_class(machine), "amd_epyc_7b13_64_core_family25_avx2");
}

TEST(MachineClass, TellsGenerationsApartThatACloudNamesAlike) {
  Machine machine;
  machine.cpu_model = "AMD EPYC";
  machine.features = {"avx2", "avx512f", "avx512vnni", "avx512bf16"};
  machine.cpu_family = 25;
  const std::string zen4 = machine_class(machine);
  machine.cpu_family = 26;
  EXPECT_NE(machine_class(machine), zen4);
}

}  // namespace
}  // namespace qcts
