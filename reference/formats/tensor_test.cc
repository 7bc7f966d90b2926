// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/tensor.h"

#include <gtest/gtest.h>

#include "reference/formats/testing.h"

namespace qcts {
namespace {

using testing::outcome;

TEST(DTypes, NamesGoBothWays) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    EXPECT_GE(dtype_bits(dtype), 6u) << dtype_name(dtype);
  }
  EXPECT_EQ(dtype_name(DType::boolean), "bool");
  EXPECT_EQ(dtype_bits(DType::complex128), 128u);
  EXPECT_FALSE(dtype_from_name("torch.bfloat16"));
}

TEST(Shapes, ProductsThatWrapAreRefused) {
  const int64_t big = int64_t{1} << 32;
  EXPECT_EQ(numel_of(std::vector<int64_t>{}), 1);
  EXPECT_EQ(numel_of(std::vector<int64_t>{3, 0, 5}), 0);
  EXPECT_EQ(outcome([&] { numel_of(std::vector<int64_t>{big, big}); }), "Overflow");
  EXPECT_EQ(outcome([&] { numel_of(std::vector<int64_t>{0, big, big}); }), "Overflow");
  EXPECT_EQ(outcome([&] { numel_of(std::vector<int64_t>{-1}); }), "Overflow");
  EXPECT_EQ(outcome([&] { bytes_of(DType::float64, std::vector<int64_t>{int64_t{1} << 62}); }), "Overflow");
  EXPECT_EQ(bytes_of(DType::float6_e2m3fn, std::vector<int64_t>{3}), 3u);
  EXPECT_EQ(contiguous_stride(std::vector<int64_t>{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
}

TEST(Tensors, ContiguousOnesAreNotCopied) {
  Tensor tensor = testing::float_tensor({2, 3}, {0, 1, 2, 3, 4, 5});
  std::vector<std::byte> scratch;
  EXPECT_EQ(row_major_view(tensor, scratch).data(), tensor.storage->bytes.data());
  EXPECT_TRUE(scratch.empty());
  tensor.shape = {3, 2};
  tensor.stride = {1, 3};
  EXPECT_FALSE(tensor.is_contiguous());
  EXPECT_EQ(row_major_bytes(tensor), testing::raw<float>({0, 3, 1, 4, 2, 5}));
  tensor.shape = {1, 2};
  tensor.stride = {77, 1};
  tensor.offset_elems = 2;
  EXPECT_TRUE(tensor.is_contiguous()) << "the stride of a dimension of one does not matter";
  EXPECT_EQ(row_major_bytes(tensor), testing::raw<float>({2, 3}));
}

TEST(Tensors, MakingOneChecksTheBytes) {
  EXPECT_EQ(outcome([] { make_tensor(DType::float32, {2}, testing::Bytes(7)); }), "TensorBounds");
  EXPECT_EQ(make_tensor(DType::float32, {0, 4}, {}).numel(), 0);
}

}  // namespace
}  // namespace qcts
