// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/conformance/profiles.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"
#include "suites/base/paths.h"
#include "suites/cases/conformance/mustpass.h"

namespace qcts {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::filesystem::path shipped() { return repository_root() / "suites" / "profiles.json"; }

class ProfileFile : public testing::Test {
 protected:
  std::string error_of(const std::string& text) {
    const std::filesystem::path file = scratch_.path() / "profiles.json";
    std::ofstream(file) << text;
    try {
      load_profiles(file);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  ScratchFolder scratch_;
};

TEST_F(ProfileFile, NamesWhatIsWrong) {
  const auto with = [](const std::string& entry) { return R"({"schema": 1, "profiles": {)" + entry + "}}"; };
  EXPECT_EQ(error_of(with(R"("a": {"about": "", "families": ["int8_row"], "ops": ["linear"]})")), "");
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": ["int9_row"]})")),
              AllOf(HasSubstr("a: no family 'int9_row'"), HasSubstr("int8_row")));
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": ["int8_row"], "ops": ["file"]})")),
              HasSubstr("a: no operation 'file'"));
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": ["int8_row"], "policies": ["dyn"]})")),
              HasSubstr("a: no policy 'dyn'"));
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": ["int8_row"], "op": []})")),
              HasSubstr("a: no key 'op'"));
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": []})")), HasSubstr("a: families: empty"));
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": ["mx"], "schemes": ["mxfp9*"]})")),
              HasSubstr("a: no scheme of its families fits 'mxfp9*'"));
  EXPECT_THAT(error_of(with(R"("a": {"about": "", "families": ["mx"], "options": ["mx_scale_exakt"]})")),
              HasSubstr("a: no option 'mx_scale_exakt' that can be computed"));
  EXPECT_THAT(
      error_of(with(
          R"("a": {"about": "", "families": ["mx"], "schemes": ["mx*_rceil"], "options": ["mx_scale_exact"]})")),
      HasSubstr("a: option 'mx_scale_exact' changes none of its schemes"));
  EXPECT_THAT(error_of(with(R"("int8_row": {"about": "", "families": ["nf4"]})")), HasSubstr("is taken"));
  EXPECT_THAT(error_of(R"({"schema": 2, "profiles": {}})"), HasSubstr("want {\"schema\": 1"));
}

TEST(Profiles, AnUnknownNameIsRefusedWithTheNearest) {
  const std::vector<Profile> known = load_profiles(shipped());
  EXPECT_EQ(profiles_named(" int8_row  torchao_0_18 ", known).size(), 2u);
  EXPECT_THAT(profiles_named("", known), IsEmpty());
  try {
    profiles_named("int8_row torchao_0_81", known);
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no profile 'torchao_0_81'"), HasSubstr("torchao_0_18")));
  }
}

TEST(Profiles, PlayOptionsOnTheirSchemesAlone) {
  const std::vector<Profile> known = load_profiles(shipped());
  const PlayedProfiles played(profiles_named("ocp_mx_1_0", known));
  EXPECT_EQ(played.options(), (std::vector<std::string>{"mx_non_finite_any", "mx_scale_exact"}));
  const Scheme *floor = find_scheme("mxfp4_floor"), *ceil = find_scheme("mxfp4_ceil");
  ASSERT_NE(played.recipe(Op::quantize, *floor), nullptr);
  EXPECT_NE(played.recipe(Op::quantize_activation, *floor), nullptr);
  EXPECT_EQ(played.recipe(Op::linear, *floor), nullptr);
  EXPECT_EQ(played.recipe(Op::quantize, *ceil), nullptr);
  EXPECT_TRUE(PlayedProfiles(profiles_named("torchao_0_18 int8_row", known)).options().empty());
  EXPECT_THROW(PlayedProfiles(profiles_named("ocp_mx_1_0 torchao_0_18", known)), std::runtime_error);
}

// 2^-126 * 1.5 in a block of e2m1: the scale byte is 0, so OCP's code is that of 3, and torchao's of 1.5.
TEST(Profiles, OcpDividesByTheScaleThatItDecodesWith) {
  const PlayedProfiles played(profiles_named("ocp_mx_1_0", load_profiles(shipped())));
  const Scheme& scheme = *find_scheme("mxfp4_floor");
  std::vector<std::byte> weight(32 * 4);
  store_float(DType::float32, weight, 0, 0x1.8p-126);
  const Matrix matrix{DType::float32, 1, 32, weight};
  const Planes own = scheme.quantize(matrix);
  const Planes ocp = quantized_by(played.recipe(Op::quantize, scheme), scheme, matrix, kPlain);
  EXPECT_EQ(own[1].bytes[0], std::byte{0});
  EXPECT_EQ(ocp[1].bytes[0], std::byte{0});
  const auto value = [&](const Planes& planes) {
    return load_float(DType::float32, scheme.dequantize(planes, {DType::float32, 1, 32}), 0);
  };
  EXPECT_EQ(value(ocp), 0x1.8p-126);
  EXPECT_EQ(value(own), 0x1.8p-127);
}

TEST(Profiles, HaveTheCasesOfTheirFamiliesOperationsAndPolicies) {
  const std::vector<Profile> known = load_profiles(shipped());
  const std::vector<std::string> mustpass = load_mustpass(repository_root() / "suites/mustpass/default.txt");
  const Fixtures fixtures = load_fixtures(fixtures_folder(), Files::known);
  const auto cases = [&](const char* name) {
    return profile_cases(profiles_named(name, known), mustpass, fixtures);
  };
  const std::vector<std::string> all = cases("int8_row");
  const auto listed = std::ranges::count_if(mustpass, [](const std::string& id) {
    const CaseId parsed = parse_case_id(id).value();
    return parsed.op != Op::file && parsed.scheme == "int8_row";
  });
  EXPECT_EQ(std::ssize(all), listed) << "every one of the list";
  EXPECT_TRUE(std::ranges::is_sorted(all));
  const std::vector<std::string> weight_only = cases("torchao_0_18_weight_only");
  EXPECT_THAT(all, Contains(HasSubstr("linear/int8_row/noise_dyn_row_sym_m")));
  EXPECT_THAT(weight_only, Each(Not(HasSubstr("/noise_dyn_row_sym_m"))));
  EXPECT_THAT(weight_only, Each(Not(HasSubstr("quantize_activation"))));
  EXPECT_THAT(weight_only, Contains(HasSubstr("linear/int8_row/noise_m")));
  EXPECT_GT(weight_only.size(), all.size());
}

}  // namespace
}  // namespace qcts
