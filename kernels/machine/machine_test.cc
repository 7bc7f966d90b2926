// SPDX-License-Identifier: BSD-3-Clause
// With the feature mask a test takes an older machine's path on a newer one; a mask that hides nothing would
// prove nothing.
#include "kernels/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

const std::vector<std::string> kNew = {"sse4_2",     "fma",      "f16c",     "avx2",
                                       "avx512f",    "avx512bw", "avx512dq", "avx512vl",
                                       "avx512vnni", "amx_tile", "amx_int8"};

TEST(Machine, MaskKeepsTheNamedAndWhatTheyImply) {
  EXPECT_THAT(masked_features(kNew, "fma"), ElementsAre("sse4_2", "fma", "avx2"));
  EXPECT_THAT(masked_features(kNew, "avx512vnni"),
              IsSupersetOf({"avx512vnni", "avx512vl", "avx512f", "avx2", "f16c"}));
  EXPECT_THAT(masked_features(kNew, "avx512vnni"), Not(Contains("amx_int8")));
  EXPECT_THAT(masked_features(kNew, "amx_int8"), IsSupersetOf({"amx_int8", "amx_tile", "avx512bw"}));
}

TEST(Machine, MaskAddsNothingThatTheProcessorLacks) {
  EXPECT_THAT(masked_features({"sse4_2"}, "avx512f,avx2"), ElementsAre("sse4_2"));
}

TEST(Machine, AnEmptyMaskHidesEverything) {
  EXPECT_THAT(masked_features(kNew, ""), IsEmpty());
  EXPECT_THAT(masked_features(kNew, "none,,"), IsEmpty());
}

TEST(Machine, VariantsRunExactlyWhereTheirFeaturesAre) {
  EXPECT_EQ(variant_refusal("scalar"), "");
  EXPECT_EQ(variant_refusal("aten"), "");
  EXPECT_EQ(variant_refusal("riscv"), "no such variant");
  // In addition to those that they imply.
  const std::vector<const char*> avx512 = {"f16c", "avx512bw", "avx512dq", "avx512vl"};
  const std::pair<const char*, std::vector<const char*>> variants[] = {
      {"avx2", {"fma", "f16c"}},
      {"avxvnni", {"fma", "f16c", "avxvnni"}},
      {"avx512", {}},
      {"avx512vnni", {"avx512vnni"}},
      {"avx512bf16", {"avx512bf16"}},
      {"avx512vbmi", {"avx512bf16", "avx512vbmi"}},
      {"avx512fp16", {"avx512fp16"}},
      {"amx", {"avx512vnni", "amx_tile", "amx_int8", "amx_bf16"}}};
  for (const auto& [variant, own] : variants) {
    std::vector<const char*> features = own;
    if (std::string_view(variant).starts_with("avx512") || std::string_view(variant) == "amx")
      features.insert(features.end(), avx512.begin(), avx512.end());
    bool all = true;
    for (const char* feature : features) {
      if (machine().has(feature)) continue;
      all = false;
      EXPECT_THAT(variant_refusal(variant), HasSubstr(feature)) << variant;
    }
    if (all) {
      EXPECT_EQ(variant_refusal(variant), "") << variant;
    }
  }
}

TEST(Machine, ReadsWeightsAsItsVendorsProcessorsLike) {
  EXPECT_EQ(weight_reading_of("AuthenticAMD", 25, true), WeightReading::followed);
  EXPECT_EQ(weight_reading_of("AuthenticAMD", 25, false), WeightReading::side_by_side);
  EXPECT_EQ(weight_reading_of("AuthenticAMD", 26, true), WeightReading::prefetched);
  EXPECT_EQ(weight_reading_of("GenuineIntel", 6, true), WeightReading::prefetched);
  EXPECT_EQ(weight_reading_of("GenuineIntel", 6, false), WeightReading::prefetched);
}

TEST(Machine, WaysOfReadingWeightsAreKnownByTheirNames) {
  for (const WeightReading reading :
       {WeightReading::prefetched, WeightReading::followed, WeightReading::side_by_side})
    EXPECT_EQ(weight_reading_named(name_of(reading)), reading);
  EXPECT_STREQ(name_of(WeightReading::side_by_side), "side_by_side");
  EXPECT_THROW(weight_reading_named("fast"), std::runtime_error);
  EXPECT_THROW(weight_reading_named(""), std::runtime_error);
}

TEST(Machine, KnowsItself) {
  EXPECT_GE(machine().logical_cpus, 1);
  EXPECT_FALSE(machine().cpu_model.empty());
  EXPECT_GT(machine().cpu_family, 0u);
}

}  // namespace
}  // namespace qcts
