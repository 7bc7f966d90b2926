// SPDX-License-Identifier: BSD-3-Clause
// Tests the weights for timing, most of whose rows repeat those of a few that the recipe quantized.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "suites/inputs/generate.h"
#include "suites/inputs/generate_parts.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {
namespace {

// Weights for timing have only the codes, scales and zero points that the recipe would produce, and their
// rows differ, so that a kernel that reads the wrong block of rows is noticed.
TEST(RandomPlanes, AreRowsThatTheRecipeMakes) {
  std::map<std::string_view, const Scheme*> last;  // by family; one-bit codes barely distinguish rows
  for (const Scheme* scheme : schemes()) last[scheme->family()] = scheme;
  for (const auto& [family, scheme] : last) {
    const int64_t k = 2 * std::max<int64_t>(scheme->group(), 64);
    const WeightShape few{DType::float32, 512, k}, many{DType::float32, 1024, k};
    if (scheme->refusal(many)) continue;
    const Planes small = random_planes(*scheme, few, 3), large = random_planes(*scheme, many, 3);
    require_planes(large, scheme->plane_specs(many));
    const auto row = [&](const Planes& planes, const WeightShape& shape, int64_t n) {
      std::vector<ExactWeight> exact(static_cast<size_t>(k));
      scheme->exact_row(planes, shape, n, exact);
      std::vector<double> values;
      for (const ExactWeight& w : exact) values.push_back(w.product + w.zero);
      return values;
    };
    // nf4 shares a second-level scale over more rows than a unit has, so all of it is quantized.
    const std::vector<std::byte> weight = noise_weight_for(*scheme, many, 3);
    const bool whole = large[0].bytes == scheme->quantize({many.dtype, many.n, many.k, weight}).at(0).bytes;
    EXPECT_EQ(whole, family == "nf4");
    std::set<std::vector<double>> made, units;
    for (int64_t n = 0; n < few.n; ++n) made.insert(row(small, few, n));
    for (int64_t n = 0; n < many.n; n += 33) {
      const bool one_of_them = made.contains(row(large, many, n));
      EXPECT_TRUE(one_of_them || whole) << scheme->name() << " row " << n;
    }
    for (int64_t n = 0; n < many.n; n += 32) units.insert(row(large, many, n));
    EXPECT_GT(units.size(), 4u) << scheme->name();
  }
}

}  // namespace
}  // namespace qcts
