// SPDX-License-Identifier: BSD-3-Clause
// Tests that sparse weights with wrong indices or metadata are refused, or not expanded, before anything is
// allocated for them. Goldens of torchao and torch cover correct ones (suites/readers/test_dialects.py).
#include "reference/dialects/classes/sparse.h"

#include <cstring>

#include <gtest/gtest.h>

#include "reference/dialects/classes/affine.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

template <typename T>
Tensor part_of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_tensor(dtype, std::move(shape), std::move(bytes));
}

struct Bsr {
  std::vector<int64_t> shape = {4, 6}, crow = {0, 1, 3}, col = {2, 0, 1};
  int64_t block = 2;
  NamedTensor tensor() const {
    const int64_t held = static_cast<int64_t>(col.size());
    std::vector<int8_t> values(static_cast<size_t>(held * block * block));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int8_t>(i + 1);
    NamedTensor t;
    t.name = "w", t.type = "BlockSparseTensor", t.dtype = DType::int8, t.shape = shape;
    t.payload = {{"bsr_crow_indices", part_of(DType::int64, {static_cast<int64_t>(crow.size())}, crow)},
                 {"bsr_col_indices", part_of(DType::int64, {held}, col)},
                 {"bsr_values", part_of(DType::int8, {held, block, block}, values)}};
    return t;
  }
};

TEST(BlockSparse, PutsBlocksWhereTheIndicesSay) {
  const std::optional<Tensor> dense = dense_by_dialect(Bsr().tensor());
  ASSERT_TRUE(dense);
  const std::vector<int8_t> want = {0, 0, 0, 0,  1, 2, 0, 0, 0,  0,  3, 4,
                                    5, 6, 9, 10, 0, 0, 7, 8, 11, 12, 0, 0};
  const std::vector<std::byte> got = row_major_bytes(*dense);
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size()), 0);
}

// Torch's to_dense() adds each block to zeros: -0 becomes +0, and all other bits stay.
TEST(BlockSparse, ClearsTheSignOfZeros) {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    const size_t width = dtype_bytes(dtype);
    std::vector<std::byte> values(8 * width);  // the second block is {-0, smallest negative}, {-0, +0}
    for (size_t i : {4, 5, 6}) values[(i + 1) * width - 1] = std::byte{0x80};
    values[5 * width] = std::byte{1};
    NamedTensor t = Bsr().tensor();
    t.dtype = dtype, t.shape = {2, 4};
    t.payload = {{"bsr_crow_indices", part_of<int64_t>(DType::int64, {2}, {0, 2})},
                 {"bsr_col_indices", part_of<int64_t>(DType::int64, {2}, {0, 1})},
                 {"bsr_values", make_tensor(dtype, {2, 2, 2}, values)}};
    const std::optional<Tensor> dense = dense_by_dialect(t);
    ASSERT_TRUE(dense) << dtype_name(dtype);
    std::vector<std::byte> want(8 * width);  // row 0: the first row of each block
    want[3 * width] = std::byte{1}, want[4 * width - 1] = std::byte{0x80};
    EXPECT_EQ(row_major_bytes(*dense), want) << dtype_name(dtype);
  }
}

TEST(BlockSparse, RefusesIndicesThatLie) {
  const std::pair<const char*, Bsr> lies[] = {
      {"begins after 0", {.crow = {1, 1, 3}}},
      {"ends before the last block", {.crow = {0, 1, 2}}},
      {"ends after the last block", {.crow = {0, 1, 4}}},
      {"goes back", {.crow = {0, 4, 3}}},
      {"a row too many", {.crow = {0, 1, 3, 3}}},
      {"a column too far", {.col = {3, 0, 1}}},
      {"a negative column", {.col = {-1, 0, 1}}},
      {"a duplicate column", {.col = {2, 1, 1}}},
      {"no whole blocks", {.shape = {4, 7}}},
      {"more places than a file of this size may describe", {.shape = {4, int64_t{1} << 40}}},
  };
  EXPECT_NO_THROW(block_sparse_outer(Bsr().tensor()));
  for (const auto& [name, parts] : lies) {
    EXPECT_THROW(block_sparse_outer(parts.tensor()), Refused) << name;
    EXPECT_FALSE(dense_by_dialect(parts.tensor())) << name;
  }
}

Tensor all_zeros(DType dtype, std::vector<int64_t> shape) {
  const uint64_t bytes = bytes_of(dtype, shape);
  return make_tensor(dtype, std::move(shape), std::vector<std::byte>(bytes));
}

NamedTensor semi_structured(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> packed,
                            std::vector<int64_t> meta, int nibbles) {
  NamedTensor t;
  t.name = "w", t.type = "SparseSemiStructuredTensorCUTLASS", t.dtype = dtype, t.shape = std::move(shape);
  const DType words = dtype == DType::int8 ? DType::int32 : DType::int16;
  const uint64_t bytes = bytes_of(words, meta);
  t.payload = {
      {"packed", make_tensor(dtype, packed, std::vector<std::byte>(bytes_of(dtype, packed), std::byte{1}))},
      {"meta", make_tensor(words, meta, std::vector<std::byte>(bytes, static_cast<std::byte>(nibbles)))}};
  return t;
}

TEST(SemiStructured, RefusesPartsOfOtherShapes) {
  EXPECT_NO_THROW(semi_structured_outer(semi_structured(DType::float16, {32, 32}, {32, 16}, {32, 2}, 0x44)));
  EXPECT_NO_THROW(semi_structured_outer(semi_structured(DType::float32, {32, 32}, {32, 16}, {32, 4}, 0x44)));
  EXPECT_NO_THROW(semi_structured_outer(semi_structured(DType::int8, {16, 64}, {16, 32}, {16, 2}, 0x44)));
  for (const NamedTensor& wrong : {
           semi_structured(DType::float16, {32, 64}, {32, 16}, {32, 2}, 0x44),
           semi_structured(DType::float16, {32, 32}, {32, 16}, {32, 4}, 0x44),
           semi_structured(DType::float16, {32, 40}, {32, 20}, {32, 2}, 0x44),
           semi_structured(DType::float16, {16, 32}, {16, 16}, {16, 2}, 0x44),
           semi_structured(DType::float32, {32, 32}, {32, 16}, {32, 2}, 0x44),
           semi_structured(DType::int8, {16, 32}, {16, 16}, {16, 2}, 0x44),
           semi_structured(DType::float64, {32, 32}, {32, 16}, {32, 2}, 0x44),
       })
    EXPECT_THROW(semi_structured_outer(wrong), Refused) << shape_text(wrong.shape);
}

TEST(SemiStructured, CusparseltHoldsAtLeastTheKeptHalf) {
  NamedTensor t;
  t.name = "w", t.type = "SparseSemiStructuredTensorCUSPARSELT", t.shape = {32, 64};
  for (const int64_t elems : {1024, 1152})
    EXPECT_EQ((t.payload = {{"packed", all_zeros(DType::bfloat16, {elems})}}, cusparselt_outer(t).dtype),
              DType::bfloat16);
  t.payload = {{"packed", all_zeros(DType::bfloat16, {1023})}};
  EXPECT_THROW(cusparselt_outer(t), Refused);
  t.payload = {{"packed", all_zeros(DType::float64, {1152})}};
  EXPECT_THROW(cusparselt_outer(t), Refused);
  EXPECT_FALSE(dense_by_dialect(t));
}

TEST(SemiStructured, MetadataThatNamesOnePlaceTwiceMeansNothing) {
  EXPECT_TRUE(dense_by_dialect(semi_structured(DType::float16, {32, 32}, {32, 16}, {32, 2}, 0x94)));
  EXPECT_FALSE(dense_by_dialect(semi_structured(DType::float16, {32, 32}, {32, 16}, {32, 2}, 0x95)));
  // float32 keeps the first or the second of a pair, never across pairs.
  EXPECT_TRUE(dense_by_dialect(semi_structured(DType::float32, {32, 32}, {32, 16}, {32, 4}, 0xe4)));
  EXPECT_FALSE(dense_by_dialect(semi_structured(DType::float32, {32, 32}, {32, 16}, {32, 4}, 0x94)));
}

}  // namespace
}  // namespace qcts
