// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/files/reached_bytes.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

Tensor view(const Tensor& base, std::vector<int64_t> shape, std::vector<int64_t> stride, int64_t offset) {
  Tensor tensor = base;
  tensor.shape = std::move(shape), tensor.stride = std::move(stride), tensor.offset_elems = offset;
  return tensor;
}

class Reached : public testing::Test {
 protected:
  const Tensor whole_ = make_tensor(DType::int16, {4, 6}, std::vector<std::byte>(48));
  ReachedBytes bytes_;
};

TEST_F(Reached, ASliceReachesItsOwnRows) {
  EXPECT_EQ(bytes_.reached(*whole_.storage), 0);
  EXPECT_EQ(bytes_.add(view(whole_, {2, 6}, {6, 1}, 6)), 24);
  EXPECT_EQ(bytes_.add(view(whole_, {2, 6}, {6, 1}, 12)), 12) << "one of its rows is reached already";
  EXPECT_EQ(bytes_.reached(*whole_.storage), 36);
  EXPECT_EQ(bytes_.add_whole(*whole_.storage), 12);
}

TEST_F(Reached, ColumnsReachEachRowsPart) {
  EXPECT_EQ(bytes_.add(view(whole_, {4, 2}, {6, 1}, 1)), 16);
  EXPECT_EQ(bytes_.add(view(whole_, {4, 3}, {6, 1}, 2)), 16) << "overlaps by one column";
  EXPECT_EQ(bytes_.reached(*whole_.storage), 32);
}

TEST_F(Reached, OrderAndRepetitionOfElementsDoNotMatter) {
  EXPECT_EQ(bytes_.add(view(whole_, {6, 4}, {1, 6}, 0)), 48) << "transposed";
  EXPECT_EQ(bytes_.add(whole_), 0);
  ReachedBytes others;
  EXPECT_EQ(others.add(view(whole_, {5, 3}, {0, 2}, 1)), 6) << "expanded, every second element";
  EXPECT_EQ(others.add(view(whole_, {0, 3}, {3, 1}, 0)), 0);
}

}  // namespace
}  // namespace qcts
