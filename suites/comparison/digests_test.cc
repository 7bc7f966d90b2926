// SPDX-License-Identifier: BSD-3-Clause
// Protects the comparison of a GPU's outputs with the executor's: what differs is named, and sums of another
// architecture, failures, and cases that only one side has, are not compared.
#include "suites/comparison/digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/run_error.h"

namespace qcts {
namespace {

constexpr const char *kHash = "00000000000000aa", *kOtherHash = "00000000000000bb";

Verdict hashed(const std::string& id, const std::string& variant, const std::string& hash) {
  Verdict verdict;
  verdict.case_id = parse_case_id(id).value();
  verdict.provider = "cuda";
  verdict.variant = variant;
  verdict.status = Status::pass;
  verdict.output_hash = hash;
  return verdict;
}

RunRecord record_on(uint64_t capability, std::vector<Verdict> verdicts) {
  RunRecord record;
  record.head.suite_commit = "abc";
  if (capability > 0) record.head.environment["device"] = {{"capability", capability}};
  record.verdicts = std::move(verdicts);
  return record;
}

RunRecord executed(std::vector<Verdict> verdicts, uint64_t capability = 0) {
  for (Verdict& verdict : verdicts) verdict.provider = "cudaemu";
  return record_on(capability, std::move(verdicts));
}

TEST(Digests, NameWhatDiffers) {
  const std::vector<Verdict> device = {hashed("numerics.quantize/int8_row/a", "sm80", kHash),
                                       hashed("numerics.quantize/int8_row/b", "sm80", kHash)};
  std::vector<Verdict> executor = device;
  EXPECT_EQ(compare_digests(record_on(90, device), executed(executor)).text(), "digests: 2 equal, 0 differ");
  executor[1].output_hash = kOtherHash;
  const Digests digests = compare_digests(record_on(90, device), executed(executor));
  EXPECT_EQ(digests.text(),
            "digests: 1 equal, 1 differs, first numerics.quantize/int8_row/b, sm80: 00000000000000aa on the "
            "device, 00000000000000bb in the executor");
  EXPECT_EQ(digests.differing(), 1u);
}

TEST(Digests, AreOfWhatPassedOnBothSides) {
  Verdict failed = hashed("numerics.quantize/int8_row/a", "sm80", ""),
          without = hashed("numerics.quantize/int8_row/b", "sm80", "");
  failed.status = Status::fail;
  const std::vector<Verdict> device = {failed, without,
                                       hashed("numerics.quantize/int8_row/c", "sm80", kHash)};
  const std::vector<Verdict> executor = {hashed("numerics.quantize/int8_row/a", "sm80", kHash),
                                         hashed("numerics.quantize/int8_row/b", "sm80", kHash),
                                         hashed("numerics.quantize/int8_row/c", "sm90a", kHash)};
  EXPECT_TRUE(compare_digests(record_on(90, device), executed(executor)).cases.empty());
}

struct Sums {
  const char* variant;
  uint64_t device, executor;  // capabilities; 0: the executor on the host
  bool are_compared;
};

TEST(Digests, OfALinearAreOfOneArchitecture) {
  for (const Sums& sums : {Sums{"sm80", 80, 0, true}, Sums{"sm80", 90, 0, false}, Sums{"sm80", 90, 90, true},
                           Sums{"sm80", 86, 90, false}, Sums{"sm90a", 90, 0, true}}) {
    SCOPED_TRACE(std::string(sums.variant) + " " + std::to_string(sums.device) + " " +
                 std::to_string(sums.executor));
    const std::vector<Verdict> verdicts = {hashed("numerics.linear/int8_row/a", sums.variant, kHash),
                                           hashed("numerics.quantize/int8_row/a", sums.variant, kHash)};
    const Digests digests =
        compare_digests(record_on(sums.device, verdicts), executed(verdicts, sums.executor));
    EXPECT_EQ(digests.cases.size(), sums.are_compared ? 2u : 1u);
    EXPECT_EQ(digests.other_sums, sums.are_compared ? 0u : 1u);
    EXPECT_EQ(digests.text().find("sums of another architecture") != std::string::npos, !sums.are_compared);
  }
}

TEST(Digests, OfDifferentRunsAreRefusedByName) {
  const RunRecord device = record_on(90, {hashed("numerics.quantize/int8_row/a", "sm80", kHash)});
  RunRecord other = device;
  const auto refusal = [&] {
    try {
      compare_digests(device, other);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(), "accepted");
  other.head.seed = 7;
  EXPECT_THAT(refusal(), testing::HasSubstr("seed is 0 on the device, and 7 in the executor"));
  other = device;
  other.head.suite_commit = "def";
  EXPECT_THAT(refusal(), testing::HasSubstr("suite_commit"));
  other = device;
  other.head.fixtures_sha256 = "0";
  EXPECT_THAT(refusal(), testing::HasSubstr("fixtures_sha256"));
  other = device;
  other.head.seed_sha256 = "0";
  EXPECT_THAT(refusal(), testing::HasSubstr("seed_sha256"));
}

}  // namespace
}  // namespace qcts
