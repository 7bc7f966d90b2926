// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/timed_target.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "suites/base/process.h"

namespace qcts {

double TimedTarget::time_us(size_t first, size_t calls, bool rotate) {
  const double cpu = own_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < calls; ++i) call(rotate ? (first + i) % copies() : first);
  const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - start;
  spent_.wall_us += wall.count();
  spent_.cpu_us += (own_cpu_seconds() - cpu) * 1e6;
  return wall.count() / static_cast<double>(calls);
}

double TimedTarget::cpu_seconds() const { return own_cpu_seconds(); }

size_t cold_copies(uint64_t bytes, uint64_t held_bytes, uint64_t l3_bytes, uint64_t max_bytes) {
  const uint64_t wanted = 2 * (l3_bytes == 0 ? uint64_t{64} << 20 : l3_bytes);
  const uint64_t each = std::max<uint64_t>(bytes, 1);
  const uint64_t copies = (wanted + each - 1) / each + 1;
  const uint64_t max_copies = std::max<uint64_t>(max_bytes / std::max<uint64_t>(held_bytes, 1), 1);
  const uint64_t count = std::clamp<uint64_t>(copies + 1, 1, std::min<uint64_t>(max_copies, 4095));
  return static_cast<size_t>(count % 2 == 0 ? count - 1 : count);
}

uint64_t copy_budget_bytes() {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    uint64_t kib = 0;
    if (word == "MemAvailable:" && in >> kib) return std::min(kMaxBytes, kib * 1024 / 4);
  }
  return kMaxBytes / 4;
}

}  // namespace qcts
