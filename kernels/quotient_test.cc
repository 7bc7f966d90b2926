// What quantize/int4_plain_avx2.cc rests on: a product with the reciprocal and one step of Newton's round to
// the same integer as the quotient. Whole powers of two change nothing, so a scale is its significand; and
// only the floats around a tie can differ. (They agree for all 2^23 significands; here one of 61 is tried.)
#include <gtest/gtest.h>

#include <cmath>

namespace qcts {
namespace {

TEST(Reciprocal, RoundsToTheSameIntegerAsTheQuotient) {
  for (uint32_t significand = 1u << 23; significand < 1u << 24; significand += 61) {
    const float scale = static_cast<float>(significand) * 0x1p-23f, reciprocal = 1 / scale;
    for (int i = 0; i < 16; ++i) {
      float v = scale * (static_cast<float>(i) + 0.5f);
      for (int step = 0; step < 3; ++step) v = std::nextafterf(v, 0);
      for (int step = -3; step <= 3; ++step, v = std::nextafterf(v, INFINITY)) {
        const float near = v * reciprocal;
        const float found = std::fma(std::fma(-near, scale, v), reciprocal, near);
        ASSERT_EQ(std::nearbyint(found), std::nearbyint(v / scale)) << scale << " " << v;
      }
    }
  }
}

}  // namespace
}  // namespace qcts
