// SPDX-License-Identifier: BSD-3-Clause
// A provider with one planted fault, for tests of the judge. The library's file name selects the fault:
// qcts_faulty_<fault>.so. It dequantizes int8_row to float32 and is correct except for k = 13, where the
// fault acts.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "kernels/abi/qcts_kernel.h"

namespace {

// clang-format off
#define QCTS_FAULTS(FAULT) \
  FAULT(none) FAULT(wrong) FAULT(aborts) FAULT(hangs) FAULT(late) FAULT(exits) FAULT(throws) FAULT(leaks) FAULT(declines) \
  FAULT(sets_ftz) FAULT(sets_ftz_at_load) FAULT(writes_to_fds) FAULT(writes_past_end) FAULT(writes_far) \
  FAULT(aborts_when_asked) FAULT(hangs_when_asked) FAULT(writes_input) FAULT(patches_host) FAULT(writes_later) FAULT(spawns) \
  FAULT(reads_past_end) FAULT(reads_before_start) FAULT(keeps_child) FAULT(keeps_memory) FAULT(keeps_descriptor) FAULT(says_much) \
  FAULT(starts_threads) FAULT(asks_environment) FAULT(keeps_pool) FAULT(keeps_rows) FAULT(asks_math_mode) FAULT(wraps_counter) \
  FAULT(errs_once_in_512) FAULT(keeps_operation) \
  /* of load_save */ \
  FAULT(copies_unread) FAULT(refuses_all) FAULT(supports_no_file) FAULT(writes_no_file) FAULT(keeps_failed_output) \
  FAULT(flips_bit) FAULT(changes_input) FAULT(aborts_on_file)
// clang-format on
#define QCTS_ENUMERATOR(name) name,
#define QCTS_NAME(name) #name,
enum Fault { QCTS_FAULTS(QCTS_ENUMERATOR) unknown };
constexpr std::string_view kNames[] = {QCTS_FAULTS(QCTS_NAME)};

constexpr int64_t kStruckK = 13;
constexpr size_t kLeakBytes = 16u << 20, kKeptBytes = 5000;
constexpr unsigned kFlushToZero = 1u << 15;

// Returns `unknown` if the file name is not that of a fault.
Fault fault_of_file() {
  static constexpr std::string_view kPrefix = "qcts_faulty_";
  static const char here = 0;
  Dl_info info;
  if (::dladdr(&here, &info) == 0) return unknown;
  const std::string name = std::filesystem::path(info.dli_fname).stem().string();
  if (!name.starts_with(kPrefix)) return unknown;
  const auto found = std::ranges::find(kNames, std::string_view(name).substr(kPrefix.size()));
  return static_cast<Fault>(found - std::begin(kNames));
}

// A provider that its judge loads sees the verdict here, and turns every fail into a pass.
ssize_t forged_write(int fd, const void* data, size_t bytes) {
  std::string text(static_cast<const char*>(data), bytes);
  if (const size_t at = text.find(R"("status":"fail")"); at != text.npos)
    text.replace(at, 15, R"("status":"pass")");
  return ::syscall(SYS_write, fd, text.data(), text.size());
}

// Makes every write() of this process a forged_write().
void patch_host() {
#if defined(__x86_64__)
  constexpr size_t kPageBytes = 4096;
  auto* const code = reinterpret_cast<unsigned char*>(&::write);
  const auto page = reinterpret_cast<uintptr_t>(code) / kPageBytes * kPageBytes;
  if (::mprotect(reinterpret_cast<void*>(page), 2 * kPageBytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    return;
  const auto target = reinterpret_cast<uint64_t>(&forged_write);
  const unsigned char load_rax[] = {0x48, 0xb8}, jump_rax[] = {0xff, 0xe0};
  std::memcpy(code, load_rax, 2);
  std::memcpy(code + 2, &target, 8);
  std::memcpy(code + 10, jump_rax, 2);
#endif
}

const Fault kFault = [] {
  const Fault fault = fault_of_file();
  if (fault == patches_host) patch_host();
  if (fault == sets_ftz_at_load) _mm_setcsr(_mm_getcsr() | kFlushToZero);
  return fault;
}();

const bool kIsInEveryCall = kFault == keeps_memory || kFault == keeps_descriptor || kFault == says_much ||
                            kFault == starts_threads || kFault == asks_environment || kFault == keeps_pool ||
                            kFault == keeps_rows || kFault == asks_math_mode || kFault == wraps_counter ||
                            kFault == errs_once_in_512 || kFault == keeps_operation;

// Uses `count` threads, including this one, and waits for the others.
void work_in_threads(int count) {
  std::vector<std::jthread> others;
  for (int i = 1; i < count; ++i) others.emplace_back([] {});
}

const void* plane(const qcts_problem* problem, const char* name) {
  for (uint32_t i = 0; i < problem->n_planes; ++i)
    if (std::strcmp(problem->planes[i].name, name) == 0) return problem->planes[i].data;
  return nullptr;
}

float scale_of(const qcts_problem* problem, int64_t row) {
  float scale;
  std::memcpy(&scale, static_cast<const char*>(plane(problem, "scale")) + row * 4, 4);
  return scale;
}

void put(const qcts_problem* problem, int64_t row, int64_t column, float value) {
  std::memcpy(static_cast<char*>(problem->y) + row * problem->ldy_bytes + column * 4, &value, 4);
}

void keep(size_t bytes) {
  volatile char* const block = static_cast<char*>(std::malloc(bytes));
  for (size_t i = 0; i < bytes; ++i) block[i] = 1;
}

bool has_linear_run = false;  // in this process

// Uses the row lengths of the call that was made 256 calls ago as if they were this call's.
void wrap_counter(const qcts_problem* problem) {
  constexpr int64_t kRows = 4096;
  static uint8_t counter = 0, seen[kRows];
  static int64_t lengths[kRows];
  ++counter;
  for (int64_t row = 0; row < std::min(problem->n, kRows); ++row) {
    if (seen[row] != counter) {
      seen[row] = counter;
      lengths[row] = problem->k;
    }
    if (lengths[row] != problem->k) put(problem, row, 0, 12345.0f);
  }
}

// Says whether a thread runs and a child process ends as it should.
bool can_spawn() {
  bool thread_ran = false;
  std::thread([&] { thread_ran = true; }).join();
  char name[] = "true";
  char* const words[] = {name, nullptr};
  pid_t child = -1;
  int status = -1;
  return thread_ran && ::posix_spawnp(&child, name, nullptr, nullptr, words, environ) == 0 &&
         ::waitpid(child, &status, 0) == child && status == 0;
}

void strike(const qcts_problem* problem) {
  switch (kFault) {
    case wrong:
      return put(problem, problem->n - 1, problem->k - 1, 12345.0f);
    case aborts:
    case aborts_when_asked:
      std::fputs("a planted abort\n", stderr);
      std::abort();
    case hangs:
    case hangs_when_asked:
      for (;;) ::pause();
    case late:
      ::sleep(8);
      return;
    case writes_past_end:  // one element too many
      return put(problem, problem->n - 1, problem->k, 1.0f);
    case reads_past_end:
      static_cast<void>(static_cast<const volatile char*>(plane(problem, "qdata"))[problem->n * problem->k]);
      return;
    case reads_before_start:
      static_cast<void>(static_cast<const volatile char*>(plane(problem, "qdata"))[-1]);
      return;
    case keeps_child: {
      char name[] = "sleep", duration[] = "3600";
      char* const words[] = {name, duration, nullptr};
      pid_t child = -1;
      ::posix_spawnp(&child, name, nullptr, nullptr, words, environ);
      return;
    }
    case keeps_memory:
      return keep(kKeptBytes);
    case keeps_rows:
      if (problem->ldy_bytes > problem->k * 4) keep(static_cast<size_t>(problem->k) * 4);
      return;
    case asks_math_mode:
      if (std::getenv("ONEDNN_DEFAULT_FPMATH_MODE") != nullptr) put(problem, 0, 0, 12345.0f);
      return;
    case wraps_counter:
      return wrap_counter(problem);
    case errs_once_in_512: {
      static std::atomic<int> calls = 0;
      if (++calls % 512 == 0) put(problem, 0, 0, 12345.0f);
      return;
    }
    case keeps_operation:
      if (has_linear_run) put(problem, 0, 0, 12345.0f);
      return;
    case keeps_descriptor:
      static_cast<void>(::open("/dev/null", O_RDONLY));
      return;
    case says_much:
      std::puts("a planted line");
      std::fflush(stdout);
      return;
    case starts_threads:
      return work_in_threads(4);
    case asks_environment: {
      const char* own = std::getenv("OMP_NUM_THREADS");
      return work_in_threads(own == nullptr ? 1 : std::atoi(own));
    }
    case keeps_pool: {  // no fault: threads that the first call starts and that do nothing
      static const bool has_started = [] {
        for (int i = 0; i < 3; ++i)
          std::thread([] {
            for (;;) ::pause();
          }).detach();
        return true;
      }();
      static_cast<void>(has_started);
      return;
    }
    case writes_far:  // far beyond, where a heap would keep other things
      return put(problem, problem->n - 1, problem->k + 10'000, 1.0f);
    case leaks:
      for (;;) {
        char* block = static_cast<char*>(std::malloc(kLeakBytes));
        if (block == nullptr) std::abort();
        std::memset(block, 1, kLeakBytes);
      }
    case exits:
      ::_exit(0);
    case sets_ftz:
      return _mm_setcsr(_mm_getcsr() | kFlushToZero);
    case throws:
      throw 1;
    case writes_later:  // the answer is right until a thread overwrites it
      std::thread([y = static_cast<float*>(problem->y)] {
        ::usleep(200000);
        *y = 12345.0f;
      }).detach();
      return;
    case spawns:  // no fault, unless the cage refuses it
      if (!can_spawn()) put(problem, problem->n - 1, problem->k - 1, 12345.0f);
      return;
    case writes_input:
      *static_cast<char*>(const_cast<void*>(plane(problem, "qdata"))) ^= 1;
      return;
    case writes_to_fds: {
      // Writes to every descriptor that might belong to the judge.
      for (int fd = 3; fd < 8; ++fd)
        if (::write(fd, "no verdict\n", 11) < 0) continue;
      return;
    }
    default:
      return;
  }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  if (problem->k == kStruckK && (kFault == aborts_when_asked || kFault == hangs_when_asked)) strike(problem);
  if (kFault != declines && problem->w_dtype == QCTS_F32) return QCTS_OK;
  std::snprintf(why, why_size, "only float32");
  return QCTS_UNSUPPORTED;
}

qcts_status run(const qcts_problem* problem) {
  if (kFault == patches_host) return QCTS_OK;
  const auto* codes = static_cast<const int8_t*>(plane(problem, "qdata"));
  const auto* zeros = static_cast<const int8_t*>(plane(problem, "zero_point"));
  for (int64_t n = 0; n < problem->n; ++n)
    for (int64_t k = 0; k < problem->k; ++k)
      put(problem, n, k, static_cast<float>(codes[n * problem->k + k] - zeros[n]) * scale_of(problem, n));
  if (problem->k == kStruckK || kIsInEveryCall) strike(problem);
  return QCTS_OK;
}

qcts_status supports_linear(const qcts_problem* problem, char* why, size_t why_size) {
  if (problem->x_dtype == QCTS_F32 && problem->y_dtype == QCTS_F32 &&
      (problem->bias == nullptr || problem->bias_dtype == QCTS_F32))
    return QCTS_OK;
  std::snprintf(why, why_size, "only float32");
  return QCTS_UNSUPPORTED;
}

qcts_status run_linear(const qcts_problem* problem) {
  has_linear_run = true;
  const auto* codes = static_cast<const int8_t*>(plane(problem, "qdata"));
  const auto* zeros = static_cast<const int8_t*>(plane(problem, "zero_point"));
  for (int64_t m = 0; m < problem->m; ++m) {
    const auto* x =
        reinterpret_cast<const float*>(static_cast<const char*>(problem->x) + m * problem->ldx_bytes);
    for (int64_t n = 0; n < problem->n; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < problem->k; ++k)
        sum += static_cast<double>(x[k]) * (codes[n * problem->k + k] - zeros[n]);
      float bias = 0;
      if (problem->bias) std::memcpy(&bias, static_cast<const char*>(problem->bias) + n * 4, sizeof bias);
      put(problem, m, n,
          static_cast<float>(sum * static_cast<double>(scale_of(problem, n)) + static_cast<double>(bias)));
    }
  }
  return QCTS_OK;
}

qcts_status refuse(char* why, size_t why_size, qcts_status status, const char* reason) {
  std::snprintf(why, why_size, "%s", reason);
  return status;
}

qcts_status load_save(const char* input, const char* output, char* why, size_t why_size) {
  switch (kFault) {
    case refuses_all:
      return refuse(why, why_size, QCTS_INVALID, "a planted refusal");
    case supports_no_file:
      return refuse(why, why_size, QCTS_UNSUPPORTED, "not one of its containers");
    case aborts_on_file:
      std::abort();
    case writes_no_file:
      return QCTS_OK;
    default:
      break;
  }
  std::ifstream in(input, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (kFault == flips_bit) bytes[bytes.size() / 2] ^= 1;
  std::ofstream(output, std::ios::binary) << bytes;
  if (kFault == changes_input) std::ofstream(input, std::ios::app) << "more";
  return kFault == keeps_failed_output ? refuse(why, why_size, QCTS_FAILED, "a planted failure") : QCTS_OK;
}

const qcts_kernel kDequantize = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_DEQUANTIZE,
    .scheme = "int8_row",
    .variant = "scalar",
    .description = "a fault planted for the judge's own tests",
    .claims = QCTS_CLAIM_BIT_EXACT,
    .reserved = 0,
    .numerics = {},
    .supports = supports,
    .workspace_bytes = nullptr,
    .prepared_bytes = nullptr,
    .prepare = nullptr,
    .run = run,
    .fused_sums = {},
    .failure = nullptr,
    .reads_layouts = nullptr,
    .align_bytes = 0,
    .row_align_bytes = 0,
};
const qcts_kernel kLinear = [] {
  qcts_kernel kernel = kDequantize;
  kernel.op = QCTS_OP_LINEAR;
  kernel.claims = 0;
  kernel.numerics.struct_size = sizeof kernel.numerics;
  kernel.numerics.accumulator = QCTS_F64;
  kernel.supports = supports_linear;
  kernel.run = run_linear;
  return kernel;
}();
const qcts_kernel* const kKernels[] = {&kDequantize, &kLinear};
const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "faulty",
    .version = "1",
    .url = nullptr,
    .choices = nullptr,
    .n_kernels = kFault == keeps_operation ? 2u : 1u,
    .claims = 0,
    .kernels = kKernels,
    .load_save = kFault >= copies_unread ? load_save : nullptr,
    .run_program = nullptr,
    .profile = nullptr,
};

}  // namespace

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t) {
  if (kFault != unknown) return &kProvider;
  std::fputs("qcts_faulty: the file name is not that of a fault\n", stderr);
  return nullptr;
}
