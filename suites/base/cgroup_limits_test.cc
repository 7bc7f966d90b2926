// SPDX-License-Identifier: BSD-3-Clause
// Tests that the limits of control groups are found wherever they are set, and how many workers they allow.
#include "suites/base/cgroup_limits.h"

#include <fstream>
#include <limits>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr double kAllCpus = std::numeric_limits<double>::infinity();
constexpr uint64_t kAllMemory = std::numeric_limits<uint64_t>::max();

struct Tree {
  const char* name;
  std::string membership;
  std::map<std::string, std::string> files;  // below the mount
  double cpus;
  uint64_t memory_bytes;
};

class CgroupTree : public testing::TestWithParam<Tree> {};

TEST_P(CgroupTree, LimitsAreTheTightestOnTheWayDown) {
  const Tree& tree = GetParam();
  const fs::path folder =
      fs::path(testing::TempDir()) / ("cgroup." + std::to_string(::getpid()) + "." + tree.name);
  fs::create_directories(folder / "root");
  std::ofstream(folder / "self") << tree.membership;
  for (const auto& [file, text] : tree.files) {
    fs::create_directories((folder / "root" / file).parent_path());
    std::ofstream(folder / "root" / file) << text;
  }
  const CgroupLimits limits = cgroup_limits(folder / "root", folder / "self");
  EXPECT_EQ(limits.cpus, tree.cpus);
  EXPECT_EQ(limits.memory_bytes, tree.memory_bytes);
  fs::remove_all(folder);
}

const Tree kTrees[] = {
    {"none", "0::/\n", {}, kAllCpus, kAllMemory},
    {"unlimited", "0::/\n", {{"cpu.max", "max 100000\n"}, {"memory.max", "max\n"}}, kAllCpus, kAllMemory},
    {"container", "0::/\n", {{"cpu.max", "150000 100000\n"}, {"memory.max", "1073741824\n"}}, 1.5, 1u << 30},
    {"nested",
     "0::/kube/pod\n",
     {{"kube/cpu.max", "200000 100000\n"},
      {"kube/pod/cpu.max", "max 100000\n"},
      {"kube/pod/memory.max", "4096\n"}},
     2,
     4096},
    {"path_of_the_host", "0::/host/only\n", {{"cpu.max", "100000 50000\n"}}, 2, kAllMemory},
    {"version_1",
     "4:memory:/docker\n2:cpu,cpuacct:/docker\n0::/\n",
     {{"memory/docker/memory.limit_in_bytes", "2147483648\n"},
      {"cpu,cpuacct/docker/cpu.cfs_quota_us", "300000\n"},
      {"cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n"}},
     3,
     uint64_t{1} << 31},
    {"version_1_unlimited",
     "4:memory:/\n2:cpu:/\n",
     {{"memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"cpu/cpu.cfs_quota_us", "-1\n"},
      {"cpu/cpu.cfs_period_us", "100000\n"}},
     kAllCpus,
     kAllMemory},
    {"both",
     "4:memory:/a\n0::/b\n",
     {{"memory/a/memory.limit_in_bytes", "8192\n"}, {"unified/b/memory.max", "4096"}},
     kAllCpus,
     4096},
    {"no_membership", "", {{"cpu.max", "1 1\n"}}, kAllCpus, kAllMemory},
};
INSTANTIATE_TEST_SUITE_P(, CgroupTree, testing::ValuesIn(kTrees),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(DefaultJobs, FitTheProcessorsTheTimeAndTheMemory) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(default_jobs({}, 64), 4u);
  EXPECT_EQ(default_jobs({}, 2), 2u);
  EXPECT_EQ(default_jobs({.cpus = 2.5}, 64), 2u);
  EXPECT_EQ(default_jobs({.cpus = 0.5}, 64), 1u) << "a part of a processor runs one worker";
  EXPECT_EQ(default_jobs({.memory_bytes = 3 * kGiB}, 64), 3u);
  EXPECT_EQ(default_jobs({.memory_bytes = kGiB / 2}, 64), 1u);
}

}  // namespace
}  // namespace qcts
