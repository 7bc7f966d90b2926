// SPDX-License-Identifier: BSD-3-Clause
// Tests TinyQ beyond the rows of recorded_rows.inc.
#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

TEST(Tinyq, WrapsTheLargestWeightThatW8A32Clamps) {
  // bfloat16 rounds max|w| / 127 down, so that max|w| / scale rounds to 128.
  const Planes planes = find_scheme("tinyq_w8a16")->quantize({DType::bfloat16, 1, 2, from_hex("3e3f3ebf")});
  EXPECT_EQ(to_hex(plane(planes, "int8_weights").bytes), "8080");
}

TEST(Tinyq, TakesTheDtypesOfItsLayers) {
  EXPECT_TRUE(find_scheme("tinyq_w8a32")->refusal({DType::bfloat16, 4, 8}, kPlain).has_value());
  EXPECT_FALSE(find_scheme("tinyq_w8a16")->refusal({DType::bfloat16, 4, 8}, kPlain).has_value());
  EXPECT_TRUE(find_scheme("tinyq_w8a16")->refusal({DType::bfloat16, 0, 8}, kPlain).has_value());
}

}  // namespace
}  // namespace qcts
