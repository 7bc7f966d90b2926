// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/footprint.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

std::optional<uint64_t> private_bytes_of(const std::string& folder) {
  std::ifstream in(folder + "/statm");
  uint64_t all = 0, resident = 0, shared = 0;
  if (!(in >> all >> resident >> shared)) return std::nullopt;
  return (resident - std::min(shared, resident)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<uint64_t> entries_of(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator all(folder, error);
  if (error) return std::nullopt;
  return static_cast<uint64_t>(std::distance(begin(all), end(all)));
}

// A host writes to the standard error of the process that started it.
uint64_t said_bytes() {
  struct stat log {};
  return ::fstat(STDERR_FILENO, &log) == 0 && S_ISREG(log.st_mode) ? static_cast<uint64_t>(log.st_size) : 0;
}

bool has_our_cores(pid_t process) {
  cpu_set_t ours, its;
  return ::sched_getaffinity(0, sizeof ours, &ours) != 0 ||
         ::sched_getaffinity(process, sizeof its, &its) != 0 || CPU_EQUAL(&ours, &its);
}

}  // namespace

std::optional<Footprint> footprint_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  const std::optional<uint64_t> bytes = private_bytes_of(folder), descriptors = entries_of(folder + "/fd"),
                                threads = entries_of(folder + "/task");
  if (!bytes || !descriptors || !threads) return std::nullopt;
  return Footprint{*bytes, *descriptors, *threads, said_bytes(), has_our_cores(process)};
}

std::optional<Footprint> provider_footprint(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  return hosted ? footprint_of(hosted->owner->pid()) : std::nullopt;
}

std::string side_effect(std::span<const Footprint> seen, uint64_t calls) {
  constexpr uint64_t kBytesACall = 2048, kCallsAHandle = 4;
  const auto added = [&](uint64_t Footprint::*count) {
    uint64_t least = ~uint64_t{0};
    for (size_t i = 1; i < seen.size(); ++i)
      least = std::min(least, seen[i].*count - std::min(seen[i - 1].*count, seen[i].*count));
    return least;
  };
  const std::string of_calls = " of " + std::to_string(calls) + " calls";
  if (const uint64_t bytes = added(&Footprint::private_bytes); bytes >= calls * kBytesACall)
    return "keeps memory: " + std::to_string(bytes) + " bytes" + of_calls;
  if (const uint64_t open = added(&Footprint::descriptors); open * kCallsAHandle >= calls)
    return "leaves descriptors open: " + std::to_string(open) + of_calls;
  if (const uint64_t left = added(&Footprint::threads); left * kCallsAHandle >= calls)
    return "leaves threads running: " + std::to_string(left) + of_calls;
  if (const uint64_t said = added(&Footprint::said_bytes); said >= calls)
    return "writes to its standard output or error: " + std::to_string(said) + " bytes" + of_calls;
  if (!seen.back().has_our_cores) return "changed the processors that its caller's thread may use";
  return {};
}

}  // namespace qcts
