// SPDX-License-Identifier: BSD-3-Clause
// Tests fp8_row beyond the rows of recorded_rows.inc.
#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

const Scheme& scheme() { return *find_scheme("fp8_row"); }

// fp8_zero_row_nan: the NaN codes of a row of zeros have the sign that x86 gives to 0/0.
TEST(Fp8Row, ZeroRowHoldsTheBytesThatTorchaoWrites) {
  const Planes planes = scheme().quantize({DType::bfloat16, 1, 3, from_hex("000000800000")});
  EXPECT_EQ(to_hex(plane(planes, "qdata").bytes), "ffffff");
  EXPECT_EQ(to_hex(plane(planes, "scale").bytes), "00000000");
}

TEST(Fp8Row, PlacesAreRowsAndColumns) {
  EXPECT_EQ(scheme().place({DType::bfloat16, 4, 10}, kPlain, "qdata", 37), "row 3, k 7");
  EXPECT_EQ(scheme().place({DType::bfloat16, 4, 10}, kPlain, "scale", 9), "row 2");
}

}  // namespace
}  // namespace qcts
