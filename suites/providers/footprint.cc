// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/footprint.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <sched.h>
#include <sys/stat.h>
#include <time.h>
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

// Returns the CPU time of each thread, which lags up to a tick behind while the thread runs.
std::map<pid_t, uint64_t> thread_ns_of(const std::string& folder) {
  std::map<pid_t, uint64_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::ifstream in(entry.path() / "schedstat");
    uint64_t ns = 0;
    in >> ns;
    found[std::stoi(entry.path().filename().string())] = ns;
  }
  return found;
}

// Returns the CPU time of all threads that the process ever had, or 0 if the system does not report it.
uint64_t process_ns(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t sum_of(const std::map<pid_t, uint64_t>& ns) {
  uint64_t sum = 0;
  for (const auto& [thread, own] : ns) sum += own;
  return sum;
}

// Fills in the threads. A thread that still runs makes the threads that ended appear larger, so it reads
// again while they shrink.
void add_threads(const std::string& folder, pid_t process, Footprint& footprint) {
  constexpr int kTries = 5;
  constexpr std::chrono::microseconds kFallAsleep{300};
  for (int i = 0; i < kTries; ++i) {
    const uint64_t all = process_ns(process);
    std::map<pid_t, uint64_t> threads = thread_ns_of(folder);
    const uint64_t running = sum_of(threads), ended = all - std::min(all, running);
    if (i > 0 && ended >= footprint.ended_ns) return;
    footprint.thread_ns = std::move(threads);
    footprint.ended_ns = ended;
    std::this_thread::sleep_for(kFallAsleep);
  }
}

// Returns how many threads worked for at least `ns` between each two of `seen`.
size_t threads_that_work(std::span<const Footprint> seen, uint64_t ns) {
  size_t busy = 0;
  for (const auto& [thread, first] : seen.front().thread_ns) {
    uint64_t before = first, least = ~uint64_t{0};
    for (const Footprint& later : seen.subspan(1)) {
      const auto found = later.thread_ns.find(thread);
      const uint64_t now = found == later.thread_ns.end() ? before : found->second;
      least = std::min(least, now - std::min(now, before));
      before = now;
    }
    if (least >= ns) ++busy;
  }
  return busy;
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
  const std::optional<uint64_t> bytes = private_bytes_of(folder), descriptors = entries_of(folder + "/fd");
  if (!bytes || !descriptors) return std::nullopt;
  Footprint footprint{.private_bytes = *bytes,
                      .descriptors = *descriptors,
                      .said_bytes = said_bytes(),
                      .has_our_cores = has_our_cores(process)};
  add_threads(folder, process, footprint);
  return footprint;
}

std::optional<Footprint> provider_footprint(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  return hosted ? footprint_of(hosted->owner->pid()) : std::nullopt;
}

std::string side_effect(std::span<const Footprint> seen, uint64_t calls) {
  // A thread that starts and ends without work takes more than 10 us.
  constexpr uint64_t kBytesACall = 768, kCallsAHandle = 4, kWorkNs = 5000;
  const auto added_to = [&](auto count) {
    uint64_t least = ~uint64_t{0};
    for (size_t i = 1; i < seen.size(); ++i) {
      const uint64_t before = count(seen[i - 1]), now = count(seen[i]);
      least = std::min(least, now - std::min(before, now));
    }
    return least;
  };
  const auto added = [&](uint64_t Footprint::*count) {
    return added_to([=](const Footprint& footprint) { return footprint.*count; });
  };
  const std::string of_calls = " of " + std::to_string(calls) + " calls";
  if (const uint64_t bytes = added(&Footprint::private_bytes); bytes >= calls * kBytesACall)
    return "keeps memory: " + std::to_string(bytes) + " bytes" + of_calls;
  if (const uint64_t open = added(&Footprint::descriptors); open * kCallsAHandle >= calls)
    return "leaves descriptors open: " + std::to_string(open) + of_calls;
  const uint64_t left =
      added_to([](const Footprint& footprint) { return uint64_t{footprint.thread_ns.size()}; });
  if (left * kCallsAHandle >= calls) return "leaves threads running: " + std::to_string(left) + of_calls;
  if (const uint64_t ended = added(&Footprint::ended_ns); ended >= calls * kWorkNs)
    return "starts threads where 1 was asked: " + std::to_string(ended / 1000) + " us" + of_calls +
           " were in threads that ended";
  if (const size_t busy = threads_that_work(seen, calls * kWorkNs); busy > 1)
    return "works in " + std::to_string(busy) + " threads where 1 was asked, in each of " +
           std::to_string(calls) + " calls";
  if (const uint64_t said = added(&Footprint::said_bytes); said >= calls)
    return "writes to its standard output or error: " + std::to_string(said) + " bytes" + of_calls;
  if (!seen.back().has_our_cores) return "changed the processors that its caller's thread may use";
  return {};
}

}  // namespace qcts
