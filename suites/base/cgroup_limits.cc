// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/cgroup_limits.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMaxJobs = 4;
constexpr double kWorkerBytes = 0x1p30;  // all processes of plan quick with one worker: 640 MiB

// Reads the number at `place` (0 is the first) of a file such as "150000 100000"; nullopt for a word or a
// missing file.
std::optional<double> number_in(const fs::path& file, int place = 0) {
  std::ifstream text(file);
  std::string word;
  for (int i = 0; i <= place; ++i)
    if (!(text >> word)) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  return *end == '\0' && value >= 0 ? std::optional(value) : std::nullopt;
}

void tighten_cpus(std::optional<double> quota_us, std::optional<double> period_us, CgroupLimits& limits) {
  if (quota_us && period_us && *period_us > 0) limits.cpus = std::min(limits.cpus, *quota_us / *period_us);
}

void tighten_memory(std::optional<double> bytes, CgroupLimits& limits) {
  // Version 1 writes the largest number of pages where there is no limit.
  if (bytes && *bytes < 0x1p62)
    limits.memory_bytes = std::min(limits.memory_bytes, static_cast<uint64_t>(*bytes));
}

void tighten(const fs::path& group, CgroupLimits& limits) {
  tighten_cpus(number_in(group / "cpu.max"), number_in(group / "cpu.max", 1), limits);
  tighten_cpus(number_in(group / "cpu.cfs_quota_us"), number_in(group / "cpu.cfs_period_us"), limits);
  tighten_memory(number_in(group / "memory.max"), limits);
  tighten_memory(number_in(group / "memory.limit_in_bytes"), limits);
}

// Follows a group's path from the mount down. Inside a container the mount often shows the container's own
// group as its root, although the path is the host's: the part that exists counts.
void tighten_along(const fs::path& mount, const fs::path& group, CgroupLimits& limits) {
  fs::path at = mount;
  tighten(at, limits);
  for (const fs::path& part : group.relative_path()) {
    at /= part;
    tighten(at, limits);
  }
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root, const fs::path& membership) {
  CgroupLimits limits;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/a/b"; version 2: "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* mount : {"", "unified"}) tighten_along(root / mount, group, limits);
      continue;
    }
    for (size_t begin = 0;
         begin < controllers.size();) {  // "cpu,cpuacct" is a folder, and so may be each of its words
      const size_t end = std::min(controllers.find(',', begin), controllers.size());
      tighten_along(root / controllers.substr(begin, end - begin), group, limits);
      begin = end + 1;
    }
    tighten_along(root / controllers, group, limits);
  }
  return limits;
}

unsigned default_jobs(const CgroupLimits& limits, unsigned processors) {
  const double room = static_cast<double>(limits.memory_bytes) / kWorkerBytes;
  const double jobs = std::min({static_cast<double>(kMaxJobs), static_cast<double>(processors),
                                std::floor(limits.cpus), std::floor(room)});
  return static_cast<unsigned>(std::max(1.0, jobs));
}

}  // namespace qcts
