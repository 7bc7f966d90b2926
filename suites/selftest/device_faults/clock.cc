// SPDX-License-Identifier: BSD-3-Clause
// The clock library of the fake device (kernels/cudaclock/README.md): its kernels do nothing, and take as
// long as the environment says:
//   QCTS_FAKECLOCK_US=50    each launch takes this long; 5 us by default, and 0 for the empty kernel
// The fake driver's own variables for times are for other libraries.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dlfcn.h>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/fakecuda/fake_driver.h"

namespace {

using Clock = std::chrono::steady_clock;

const bool has_no_script =
    ::unsetenv("QCTS_FAKECUDA_LAUNCH_US") == 0 && ::unsetenv("QCTS_FAKECUDA_EVENT_US") == 0;

double scripted_us() {
  const char* given = std::getenv("QCTS_FAKECLOCK_US");
  return given == nullptr ? 5 : std::atof(given);
}

const char* pass_time(void* context) {
  const auto end =
      Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(*static_cast<double*>(context) * 1e3));
  while (Clock::now() < end) {
  }
  return nullptr;
}

void drop_time(void* context) { delete static_cast<double*>(context); }

qcts_status supports_all(const qcts_problem* problem, char* why, size_t why_size) {
  if (problem->device != 0) return QCTS_OK;
  std::strncpy(why, "measures a device", why_size - 1);
  return QCTS_UNSUPPORTED;
}

template <bool kIsEmpty>
qcts_status run_roof(const qcts_problem* problem) {
  static const auto enqueue = reinterpret_cast<qcts::FakeEnqueue>(
      ::dlsym(::dlopen(std::getenv("QCTS_CUDA_DRIVER"), RTLD_NOW), qcts::kFakeEnqueue));
  auto* const us = new double(kIsEmpty ? 0 : scripted_us());
  return enqueue(problem->stream, pass_time, drop_time, us) == 0 ? QCTS_OK : QCTS_FAILED;
}

template <bool kIsEmpty = false>
constexpr qcts_kernel roof(const char* scheme, const char* variant) {
  qcts_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_LINEAR;
  kernel.scheme = scheme;
  kernel.variant = variant;
  kernel.description = "passes time";
  kernel.claims = QCTS_CLAIM_CAPTURABLE;
  kernel.numerics.struct_size = sizeof(qcts_numerics);
  kernel.fused_sums.struct_size = sizeof(qcts_fused_sums);
  kernel.supports = supports_all;
  kernel.run = run_roof<kIsEmpty>;
  return kernel;
}

const qcts_kernel kRoofs[] = {roof<true>("roof_empty", "sm80"), roof("roof_read", "sm80"),
                              roof("roof_bf16", "sm80"),        roof("roof_bf16", "sm90a"),
                              roof("roof_s8", "sm80"),          roof("roof_e4m3", "sm90a")};
const qcts_kernel* const kKernels[] = {&kRoofs[0], &kRoofs[1], &kRoofs[2],
                                       &kRoofs[3], &kRoofs[4], &kRoofs[5]};
const qcts_provider kProvider = {.struct_size = sizeof kProvider,
                                 .abi_version = QCTS_ABI_VERSION,
                                 .name = "cudaclock",
                                 .version = "fake",
                                 .url = nullptr,
                                 .choices = nullptr,
                                 .n_kernels = 6,
                                 .claims = 0,
                                 .kernels = kKernels,
                                 .load_save = nullptr,
                                 .run_program = nullptr,
                                 .profile = nullptr};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : nullptr;
}
