// SPDX-License-Identifier: BSD-3-Clause
// The twins: each has a habit that looks like a cheat's, and is right.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "suites/selftest/cheats/library/kernel.h"
#include "suites/selftest/cheats/library/system.h"

namespace qcts::cheats {
namespace {

// A twin whose habit does not work answers nothing, and so fails.
qcts_status compute_if(bool works, const qcts_problem* problem) {
  return works ? compute(problem) : QCTS_FAILED;
}

// Writes a function and calls it, like kernels that compile at run time.
qcts_status make_code(const qcts_problem* problem) {
#if defined(__x86_64__)
  constexpr std::array<unsigned char, 6> kReturns42 = {0xb8, 42, 0, 0, 0, 0xc3};
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return QCTS_FAILED;
  std::memcpy(page, kReturns42.data(), kReturns42.size());
  const bool works =
      ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 && reinterpret_cast<int (*)()>(page)() == 42;
  ::munmap(page, 4096);
  return compute_if(works, problem);
#else
  return compute(problem);
#endif
}

qcts_status read_machine(const qcts_problem* problem) {
  std::string line;
  const bool works = static_cast<bool>(std::getline(std::ifstream("/proc/cpuinfo"), line)) &&
                     static_cast<bool>(std::getline(std::ifstream("/proc/self/status"), line)) &&
                     std::getenv("HOME") != nullptr;
  return compute_if(works, problem);
}

qcts_status spawn_helper(const qcts_problem* problem) {
  char name[] = "true";
  char* const words[] = {name, nullptr};
  pid_t child = -1;
  int status = -1;
  const bool works = ::posix_spawnp(&child, name, nullptr, nullptr, words, environ) == 0 &&
                     ::waitpid(child, &status, 0) == child && status == 0;
  return compute_if(works, problem);
}

qcts_status use_own_pipe(const qcts_problem* problem) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return QCTS_FAILED;
  char byte = 0;
  const bool works = ::write(ends[1], "a", 1) == 1 && ::read(ends[0], &byte, 1) == 1 && byte == 'a';
  for (const int end : ends) ::close(end);
  return compute_if(works, problem);
}

qcts_status filter_itself(const qcts_problem* problem) {
  static const bool works = refuse_swap();
  return compute_if(works, problem);
}

qcts_status search_own_table(const qcts_problem* problem) {
  std::vector<int64_t> table(1000);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int64_t>(3 * i);
  return compute_if(std::ranges::find(table, 2997) != table.end(), problem);
}

qcts_status map_shared_memory(const qcts_problem* problem) {
  const int fd = ::memfd_create("tables", 0);
  void* const page = fd < 0 || ::ftruncate(fd, 4096) != 0
                         ? MAP_FAILED
                         : ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) ::close(fd);
  if (page == MAP_FAILED) return QCTS_FAILED;
  *static_cast<int*>(page) = 1;
  const bool works = ::mprotect(page, 4096, PROT_READ) == 0 && *static_cast<int*>(page) == 1;
  ::munmap(page, 4096);
  return compute_if(works, problem);
}

qcts_status write_own_file(const qcts_problem* problem) {
  const char* folder = std::getenv("TMPDIR");
  const std::string path =
      std::string(folder == nullptr ? "/tmp" : folder) + "/table_" + std::to_string(::getpid());
  std::ofstream(path) << "tuned";
  std::string word;
  std::ifstream(path) >> word;
  ::unlink(path.c_str());
  return compute_if(word == "tuned", problem);
}

volatile sig_atomic_t& signals() {
  static volatile sig_atomic_t count = 0;
  return count;
}

qcts_status signal_itself(const qcts_problem* problem) {
  ::signal(SIGUSR1, [](int) { signals() = 1; });
  ::raise(SIGUSR1);
  return compute_if(signals() == 1, problem);
}

qcts_status fill_first(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    std::memset(static_cast<char*>(problem->y) + m * problem->ldy_bytes, 0,
                static_cast<size_t>(problem->n) * (problem->y_dtype == QCTS_F32 ? 4 : 2));
  return compute(problem);
}

qcts_status work_on_copy(const qcts_problem* problem) {
  const auto elems = static_cast<size_t>(problem->n * problem->k);
  std::vector<int8_t> codes(codes_of(*problem), codes_of(*problem) + elems);
  for (int8_t& code : codes) code = static_cast<int8_t>(code ^ 1);
  for (int8_t& code : codes) code = static_cast<int8_t>(code ^ 1);
  std::vector<qcts_plane> planes(problem->planes, problem->planes + problem->n_planes);
  for (qcts_plane& plane : planes)
    if (plane.data == codes_of(*problem)) plane.data = codes.data();
  qcts_problem copied = *problem;
  copied.planes = planes.data();
  return compute(&copied);
}

qcts_status compute_in_tiles(const qcts_problem* problem) {
  constexpr int64_t kTile = 8;
  for (int64_t tile = 0; tile < problem->n; tile += kTile)
    for (int64_t m = 0; m < problem->m; ++m)
      for (int64_t n = tile; n < std::min(tile + kTile, problem->n); ++n)
        put(*problem, m, n, element(*problem, m, n));
  return QCTS_OK;
}

// The first call takes longer, and every call computes.
qcts_status initialise_lazily(const qcts_problem* problem) {
  static const std::vector<int> table = [] {
    ::usleep(1000);
    return std::vector<int>(256, 1);
  }();
  return compute_if(table.back() == 1, problem);
}

// Keeps the last answer, and repeats it only if every byte that it depends on is the same.
qcts_status cache_by_content(const qcts_problem* problem) {
  static std::mutex mutex;
  static std::vector<float> key, answer;
  std::vector<float> now = {static_cast<float>(problem->m), static_cast<float>(problem->n),
                            static_cast<float>(problem->k)};
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t k = 0; k < problem->k; ++k) now.push_back(x_at(*problem, m, k));
  for (int64_t n = 0; n < problem->n; ++n) {
    now.push_back(scale_of(*problem, n));
    now.push_back(static_cast<float>(zero_of(*problem, n)));
    now.push_back(problem->bias ? load(problem->bias, problem->bias_dtype, n) : 0.0f);
    for (int64_t k = 0; k < problem->k; ++k) now.push_back(codes_of(*problem)[n * problem->k + k]);
  }
  const std::lock_guard lock(mutex);
  if (key.size() != now.size() || std::memcmp(key.data(), now.data(), now.size() * sizeof(float)) != 0) {
    key = std::move(now);
    answer.clear();
    for (int64_t m = 0; m < problem->m; ++m)
      for (int64_t n = 0; n < problem->n; ++n) answer.push_back(element(*problem, m, n));
  }
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n)
      put(*problem, m, n, answer[static_cast<size_t>(m * problem->n + n)]);
  return QCTS_OK;
}

// The weight as [n] scales, [n] zero points and [n, k] codes, all floats.
uint64_t packed_bytes(const qcts_problem* problem) {
  return static_cast<uint64_t>(problem->n * (problem->k + 1)) * sizeof(float);
}

qcts_status pack(const qcts_problem* problem, void* prepared) {
  auto* const floats = static_cast<float*>(prepared);
  for (int64_t n = 0; n < problem->n; ++n) {
    floats[n * (problem->k + 1)] = scale_of(*problem, n);
    for (int64_t k = 0; k < problem->k; ++k)
      floats[n * (problem->k + 1) + 1 + k] =
          static_cast<float>(codes_of(*problem)[n * problem->k + k] - zero_of(*problem, n));
  }
  return QCTS_OK;
}

qcts_status compute_packed(const qcts_problem* problem) {
  const auto* const floats = static_cast<const float*>(problem->prepared);
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) {
      const float* row = floats + n * (problem->k + 1);
      float sum = 0;
      for (int64_t k = 0; k < problem->k; ++k) sum += x_at(*problem, m, k) * row[1 + k];
      sum *= row[0];
      put(*problem, m, n, problem->bias ? sum + load(problem->bias, problem->bias_dtype, n) : sum);
    }
  return QCTS_OK;
}

// With one thread, the caller's own thread computes, because a thread that each call starts would be one too
// many.
qcts_status join_thread(const qcts_problem* problem) {
  if (problem->threads == 1) return compute(problem);
  std::thread([&] { compute(problem); }).join();
  return QCTS_OK;
}

// A child computes into the shared memory and has ended before the return.
qcts_status wait_for_child(const qcts_problem* problem) {
  const pid_t child = ::fork();
  if (child == 0) {
    compute(problem);
    ::_exit(0);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0 ? QCTS_OK : QCTS_FAILED;
}

qcts_status sum_in_lanes(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) {
      const int8_t* codes = codes_of(*problem) + n * problem->k;
      float lanes[8] = {};
      for (int64_t k = 0; k < problem->k; ++k)
        lanes[k % 8] += x_at(*problem, m, k) * static_cast<float>(codes[k] - zero_of(*problem, n));
      float sum = 0;
      for (const float lane : lanes) sum += lane;
      sum *= scale_of(*problem, n);
      put(*problem, m, n, problem->bias ? sum + load(problem->bias, problem->bias_dtype, n) : sum);
    }
  return QCTS_OK;
}

// Rounds its weights to bfloat16, and says so.
constexpr qcts_numerics kBfloat16Weights = {
    .struct_size = sizeof(qcts_numerics),
    .x_cast = QCTS_NONE,
    .scale_cast = QCTS_NONE,
    .weight_cast = QCTS_BF16,
    .product_cast = QCTS_F32,
    .accumulator = QCTS_F32,
    .partial_cast = QCTS_NONE,
    .output_cast = QCTS_NONE,
    .flags = 0,
    .reserved = 0,
};

qcts_status round_weights(const qcts_problem* problem) {
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; ++n) {
      const int8_t* codes = codes_of(*problem) + n * problem->k;
      float sum = 0;
      for (int64_t k = 0; k < problem->k; ++k) {
        uint16_t weight = 0;
        store(&weight, QCTS_BF16, 0,
              static_cast<float>(codes[k] - zero_of(*problem, n)) * scale_of(*problem, n));
        sum += x_at(*problem, m, k) * load(&weight, QCTS_BF16, 0);
      }
      put(*problem, m, n, problem->bias ? sum + load(problem->bias, problem->bias_dtype, n) : sum);
    }
  return QCTS_OK;
}

qcts_status refuse_by_shape(const qcts_problem* problem, char* why, size_t why_size) {
  if (problem->k % 8 == 0) return supports_by_type(problem, why, why_size);
  std::snprintf(why, why_size, "k must be a multiple of 8");
  return QCTS_UNSUPPORTED;
}

// A thread that waits for work between the calls and uses no time.
qcts_status keep_warm_thread(const qcts_problem* problem) {
  static std::mutex mutex;
  static std::condition_variable condition;
  static std::thread* const waiting = new std::thread([] {
    std::unique_lock lock(mutex);
    for (;;) condition.wait(lock);
  });
  return compute_if(waiting->joinable(), problem);
}

qcts_status read_clock(const qcts_problem* problem) {
  timespec before{}, after{};
  ::clock_gettime(CLOCK_MONOTONIC, &before);
  const qcts_status status = compute(problem);
  ::clock_gettime(CLOCK_MONOTONIC, &after);
  return after.tv_sec >= before.tv_sec ? status : qcts_status{QCTS_FAILED};
}

constexpr Habit kHonest[] = {
    {.name = "plain", .run = compute},
    {.name = "makes_code", .run = make_code},
    {.name = "reads_machine", .run = read_machine},
    {.name = "spawns_helper", .run = spawn_helper},
    {.name = "uses_own_pipe", .run = use_own_pipe},
    {.name = "filters_itself", .run = filter_itself},
    {.name = "searches_own_table", .run = search_own_table},
    {.name = "maps_shared_memory", .run = map_shared_memory},
    {.name = "writes_own_file", .run = write_own_file},
    {.name = "signals_itself", .run = signal_itself},
    {.name = "fills_first", .run = fill_first},
    {.name = "works_on_copy", .run = work_on_copy},
    {.name = "computes_in_tiles", .run = compute_in_tiles},
    {.name = "initialises_lazily", .run = initialise_lazily},
    {.name = "caches_by_content", .run = cache_by_content},
    {.name = "packs_in_prepare", .run = compute_packed, .prepared_bytes = packed_bytes, .prepare = pack},
    {.name = "joins_thread", .run = join_thread},
    {.name = "waits_for_child", .run = wait_for_child},
    {.name = "sums_in_lanes", .run = sum_in_lanes},
    {.name = "rounds_weights_as_declared", .run = round_weights, .numerics = &kBfloat16Weights},
    {.name = "refuses_by_shape", .run = compute, .supports = refuse_by_shape},
    {.name = "keeps_warm_thread", .run = keep_warm_thread},
    {.name = "reads_clock", .run = read_clock},
};

}  // namespace

HabitList honest_habits() { return {kHonest, std::size(kHonest)}; }

}  // namespace qcts::cheats
