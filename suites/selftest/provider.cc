// A provider with one planted fault, for the tests of the judge itself: built once for each value of
// QCTS_SELF_FAULT. It dequantizes int8_row to float32 and is right but for weights with k = 13, where the
// fault strikes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>
#include <xmmintrin.h>

#include "kernels/abi/qcts_kernel.h"

namespace {

enum Fault {
  none,
  wrong,
  aborts,
  hangs,
  late,
  leaves,
  flushes,
  throws,
  chatters,
  declines,
  flushes_at_load,
  scribbles,
  tramples,
  leaks,
  // Of load_save.
  copies,
  refuses,
  halves,
  forgets,
  rots,
  overwrites,
  knows_none,
  dies_loading
};
constexpr Fault kFault = QCTS_SELF_FAULT;
constexpr int64_t kStruckK = 13;
constexpr size_t kLeakBytes = 16u << 20;
constexpr unsigned kFlushToZero = 1u << 15;

[[maybe_unused]] const bool loaded = [] {
  if (kFault == flushes_at_load) _mm_setcsr(_mm_getcsr() | kFlushToZero);
  return true;
}();

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

void strike(const qcts_problem* problem) {
  switch (kFault) {
    case wrong:
      return put(problem, problem->n - 1, problem->k - 1, 12345.0f);
    case aborts:
      std::fputs("a planted abort\n", stderr);
      std::abort();
    case hangs:
      for (;;) ::pause();
    case late:
      ::sleep(8);
      return;
    case scribbles:  // one element too many
      return put(problem, problem->n - 1, problem->k, 1.0f);
    case tramples:  // far beyond, where a heap would keep other things
      return put(problem, problem->n - 1, problem->k + 10'000, 1.0f);
    case leaks:
      for (;;) {
        char* block = static_cast<char*>(std::malloc(kLeakBytes));
        if (block == nullptr) std::abort();
        std::memset(block, 1, kLeakBytes);
      }
    case leaves:
      ::_exit(0);
    case flushes:
      return _mm_setcsr(_mm_getcsr() | kFlushToZero);
    case throws:
      throw 1;
    case chatters: {
      // On every descriptor that might be the judge's own.
      for (int fd = 3; fd < 8; ++fd)
        if (::write(fd, "no verdict\n", 11) < 0) continue;
      return;
    }
    default:
      return;
  }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  if (kFault != declines && problem->w_dtype == QCTS_F32) return QCTS_OK;
  std::snprintf(why, why_size, "only float32");
  return QCTS_UNSUPPORTED;
}

qcts_status run(const qcts_problem* problem) {
  const auto* codes = static_cast<const int8_t*>(plane(problem, "qdata"));
  const auto* zeros = static_cast<const int8_t*>(plane(problem, "zero_point"));
  for (int64_t n = 0; n < problem->n; ++n)
    for (int64_t k = 0; k < problem->k; ++k)
      put(problem, n, k, static_cast<float>(codes[n * problem->k + k] - zeros[n]) * scale_of(problem, n));
  if (problem->k == kStruckK) strike(problem);
  return QCTS_OK;
}

qcts_status refuse(char* why, size_t why_size, qcts_status status, const char* reason) {
  std::snprintf(why, why_size, "%s", reason);
  return status;
}

qcts_status load_save(const char* input, const char* output, char* why, size_t why_size) {
  switch (kFault) {
    case refuses:
      return refuse(why, why_size, QCTS_INVALID, "a planted refusal");
    case knows_none:
      return refuse(why, why_size, QCTS_UNSUPPORTED, "not one of its containers");
    case dies_loading:
      std::abort();
    case forgets:
      return QCTS_OK;
    default:
      break;
  }
  std::ifstream in(input, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (kFault == rots) bytes[bytes.size() / 2] ^= 1;
  std::ofstream(output, std::ios::binary) << bytes;
  if (kFault == overwrites) std::ofstream(input, std::ios::app) << "more";
  return kFault == halves ? refuse(why, why_size, QCTS_FAILED, "half way") : QCTS_OK;
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
};
const qcts_kernel* const kKernels[] = {&kDequantize};
const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "self",
    .version = "1",
    .url = nullptr,
    .choices = nullptr,
    .n_kernels = 1,
    .claims = 0,
    .kernels = kKernels,
    .load_save = kFault >= copies ? load_save : nullptr,
    .run_program = nullptr,
};

}  // namespace

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t) { return &kProvider; }
