// SPDX-License-Identifier: BSD-3-Clause
// Protects what the hash of an answer stands for: all that the judge compares, and nothing that a right
// kernel may change from run to run.
#include "suites/judge/output_hash.h"

#include <gtest/gtest.h>

#include "reference/schemes/choices/other_recipes.h"
#include "reports/verdict.h"

namespace qcts {
namespace {

constexpr uint32_t kNan = 0x7fc00000, kOtherNan = 0xffc00001, kOne = 0x3f800000;

KernelInput input_of(Op op) {
  KernelInput input;
  input.op = op;
  input.scheme = find_scheme("int8_row");
  input.weight = {DType::float32, 1, 2};
  input.m = 1;
  input.y_dtype = DType::float32;
  return input;
}

KernelAnswer y_of(std::initializer_list<uint32_t> words) {
  const auto bytes = std::as_bytes(std::span(words.begin(), words.size()));
  return {{bytes.begin(), bytes.end()}, {}};
}

std::string hash_of(Op op, const KernelAnswer& answer, uint32_t claims = 0) {
  qcts_kernel kernel = {};
  kernel.claims = claims;
  return output_hash(kernel, input_of(op), answer);
}

TEST(OutputHash, IsTheBeginningOfASha256) {
  // printf '\x00\x00\x80\x3f\x00\x00\x80\x3f' | sha256sum
  EXPECT_EQ(hash_of(Op::dequantize, y_of({kOne, kOne})), "80b8fd6d60fa85fd");
  EXPECT_TRUE(is_output_hash(hash_of(Op::dequantize, y_of({kOne, kOne}))));
}

TEST(OutputHash, TakesAnyNanForOneAndEveryOtherBitAsItIs) {
  const std::string nan = hash_of(Op::dequantize, y_of({kNan, kOne}));
  EXPECT_EQ(hash_of(Op::dequantize, y_of({kOtherNan, kOne})), nan);
  EXPECT_NE(hash_of(Op::dequantize, y_of({kOne, kNan})), nan);
  EXPECT_NE(hash_of(Op::dequantize, y_of({0, kOne})), hash_of(Op::dequantize, y_of({1u << 31, kOne})));
}

TEST(OutputHash, OfALinearNeedsItsClaim) {
  EXPECT_EQ(hash_of(Op::linear, y_of({kOne, kOne})), "");
  EXPECT_EQ(hash_of(Op::linear, y_of({kOne, kOne}), QCTS_CLAIM_BATCH_INVARIANT), "");
  EXPECT_NE(hash_of(Op::linear, y_of({kOne, kOne}), QCTS_CLAIM_DETERMINISTIC), "");
}

TEST(OutputHash, OfForgivenBlocksNeedsTheClaimToo) {
  PlayedRecipe recipe = {};
  recipe.any_non_finite = true;
  KernelInput input = input_of(Op::quantize);
  input.recipe = &recipe;
  const KernelAnswer answer{{}, {{"qdata", DType::int8, {1, 2}, {std::byte{1}, std::byte{2}}}}};
  qcts_kernel kernel = {};
  EXPECT_EQ(output_hash(kernel, input, answer), "");
  recipe.any_non_finite = false;
  EXPECT_NE(output_hash(kernel, input, answer), "") << "no block is forgiven";
  recipe.any_non_finite = true;
  kernel.claims = QCTS_CLAIM_DETERMINISTIC;
  EXPECT_NE(output_hash(kernel, input, answer), "");
}

TEST(OutputHash, TellsPlanesApart) {
  const Plane codes{"qdata", DType::int8, {1, 2}, {std::byte{1}, std::byte{2}}};
  Plane named = codes, shaped = codes, typed = codes, changed = codes;
  named.name = "data";
  shaped.shape = {2, 1};
  typed.dtype = DType::uint8;
  changed.bytes[1] = std::byte{3};
  const std::string hash = hash_of(Op::quantize, {{}, {codes}});
  for (const Plane& other : {named, shaped, typed, changed})
    EXPECT_NE(hash_of(Op::quantize, {{}, {other}}), hash) << other.name;
  EXPECT_NE(hash_of(Op::quantize, {{}, {codes, named}}), hash_of(Op::quantize, {{}, {named, codes}}));
  EXPECT_EQ(hash_of(Op::quantize, {{}, {codes}}), hash);
}

}  // namespace
}  // namespace qcts
