// SPDX-License-Identifier: BSD-3-Clause
// Tests the line that a worker writes and the parent reads: no field of a verdict is lost or invented.
#include "reports/verdict.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Verdict full_verdict(Status status) {
  Verdict verdict;
  verdict.case_id = parse_case_id("numerics.linear/int8_row/m1_n64_k64").value();
  verdict.provider = "builtin";
  verdict.variant = "avx512";
  verdict.status = status;
  verdict.reason = "because \"of\" \n this";
  verdict.mismatch = Mismatch{"y: row 3", "0x3c21", "0x3c20", 7, 64};
  verdict.measures = {{"ratio", "x", 2.5, 2.25, 2.75, 30}, {"worst", "ulp", 0.1, {}, {}, {}}};
  verdict.loaded = {{"Tensor float32", "Int8Tensor int8_row float32", 3}};
  verdict.evidence = {"golden", "emulated"};
  verdict.rerun = "qcts run --filter 'x'";
  verdict.wall_us = 12.5;
  verdict.samples_us = {1.0, 2.0};
  verdict.speed = {
      {"faster", "int8_row m=1", "dense bfloat16 (aten_aten)", 2.1, 1.9, 2.3, 60, 1.01, true, Status::pass}};
  verdict.is_peer = true;
  verdict.output_hash = "00ff00ff00ff00ff";
  return verdict;
}

class EveryStatus : public testing::TestWithParam<int> {};

TEST_P(EveryStatus, SurvivesTheRoundTrip) {
  const Status status = static_cast<Status>(GetParam());
  EXPECT_EQ(status_from_name(status_name(status)), status);
  const Json json = to_json(full_verdict(status));
  const Verdict back = verdict_from_json(Json::parse(json.dump()));
  EXPECT_EQ(back.status, status);
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.full_id(), "numerics.linear/int8_row/m1_n64_k64/builtin_avx512");
}

INSTANTIATE_TEST_SUITE_P(Verdict, EveryStatus, testing::Range(0, kStatusCount), [](const auto& info) {
  return std::string(status_name(static_cast<Status>(info.param)));
});

TEST(Verdict, FileCasesHaveNoImplementationInTheirName) {
  Verdict verdict;
  verdict.case_id = parse_case_id("size.file/int8_row/toy").value();
  verdict.provider = "qcts";
  EXPECT_EQ(verdict.full_id(), "size.file/int8_row/toy");
}

TEST(Verdict, NumbersThatAreNotFiniteBecomeNullAndComeBackAsNaN) {
  Verdict verdict = full_verdict(Status::pass);
  verdict.measures[0].value = std::numeric_limits<double>::infinity();
  verdict.wall_us = std::nan("");
  const Json json = Json::parse(to_json(verdict).dump());
  EXPECT_TRUE(json["measures"][0]["value"].is_null());
  EXPECT_TRUE(json["wall_us"].is_null());
  EXPECT_TRUE(std::isnan(verdict_from_json(json).measures[0].value));
}

class BrokenField : public testing::TestWithParam<std::pair<const char*, Json>> {};

TEST_P(BrokenField, IsNamed) {
  const auto& [field, value] = GetParam();
  Json json = to_json(full_verdict(Status::fail));
  if (value.is_discarded())
    json.erase(field);
  else
    json[field] = value;
  try {
    verdict_from_json(json);
    FAIL() << "accepted a broken " << field;
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(field));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Verdict, BrokenField,
    testing::Values(std::pair{"case_id", Json(Json::value_t::discarded)}, std::pair{"status", Json("passed")},
                    std::pair{"status", Json(3)}, std::pair{"reason", Json(nullptr)},
                    std::pair{"evidence", Json("golden")}, std::pair{"peer", Json("yes")},
                    std::pair{"output_hash", Json("00ff")},
                    std::pair{"output_hash", Json("00FF00FF00FF00FF")},
                    std::pair{"speed", Json::array({Json::object()})}, std::pair{"speed", Json::array({3})},
                    std::pair{"measures", Json(Json::value_t::discarded)}));

}  // namespace
}  // namespace qcts
