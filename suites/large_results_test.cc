// Results larger than a core's caches, for which kernels have a path of their own: whole and bit for bit what
// the reference makes. The numerics kind stays below a megabyte; the latency kind asks this of what it times,
// where there is time.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "suites/case.h"
#include "suites/latency_case.h"
#include "suites/paths.h"

namespace qcts {
namespace {

const Registry& builtin() {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    filled->add(builtin_provider());
    return filled;
  }();
  return *registry;
}

// 4.3 million codes, of half a byte or more; the last block of 64 rows is short.
constexpr int64_t kRows = 2080, kColumns = 2048;

const std::vector<Case>& large_cases() {
  static const std::vector<Case> cases = [] {
    Plan plan = load_plan(plan_path("latency"));
    plan.latency_shapes = {{kRows, kColumns}};
    plan.latency_ops = {"quantize", "dequantize", "pack", "unpack"};
    plan.latency_best_only = false;
    std::set<std::string_view> families;
    for (const Scheme* scheme : schemes())
      if (families.insert(scheme->family()).second) plan.latency_schemes.emplace_back(scheme->name());
    std::vector<Case> found = expand(plan, {{}, {}, &builtin()});
    std::erase_if(found, [](const Case& c) {
      return std::string_view(c.implementation->kernel->variant) == "scalar" ||
             !c.implementation->machine_refusal().empty();
    });
    return found;
  }();
  return cases;
}

class LargeResults : public testing::TestWithParam<size_t> {};

TEST_P(LargeResults, AreTheReferences) {
  const Case& c = large_cases()[GetParam()];
  TimedKernel kernel(c, 1, 2);
  if (const Support support = kernel.supports(); support.status != QCTS_OK) GTEST_SKIP() << support.reason;
  EXPECT_EQ(kernel.make_and_verify(1), "") << c.full_id();
}

INSTANTIATE_TEST_SUITE_P(Builtin, LargeResults, testing::Range(size_t{0}, large_cases().size()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           const Case& c = large_cases()[info.param];
                           std::string name = c.op + "_" + std::string(c.scheme->name()) + "_" + c.layout +
                                              "_" + c.implementation->name();
                           for (char& letter : name)
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           return name;
                         });

}  // namespace
}  // namespace qcts
