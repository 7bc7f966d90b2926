// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/provider_call.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "suites/providers/remote_provider.h"

namespace qcts {
namespace {

constexpr uint32_t kStickyFlags = 0x3f;  // Intel SDM vol. 1, 10.2.3: MXCSR bits 0 to 5
constexpr uint32_t kDenormalsAreZero = 1u << 6, kRounding = 3u << 13, kFlushToZero = 1u << 15;

// Runs `call` and always restores the control state.
template <typename Call>
auto guarded(const std::string& who, const char* function, Call call) {
  const uint32_t before = float_control();
  std::string thrown;
  decltype(call()) answer{};
  try {
    answer = call();
  } catch (const ProviderFault&) {  // from a provider that this program calls remotely
    set_float_control(before);
    throw;
  } catch (const std::exception& error) {
    thrown = error.what();
    if (thrown.empty()) thrown = "an exception";
  } catch (...) {
    thrown = "an exception of a foreign type";
  }
  const uint32_t after = float_control();
  if (after != before) {
    set_float_control(before);
    throw HarmFault(std::string(function) + "() of " + who +
                    " left the floating-point control state changed: " + float_control_change(before, after));
  }
  if (!thrown.empty())
    throw HarmFault(std::string(function) + "() of " + who + " threw across the C ABI: " + thrown);
  return answer;
}

qcts_status known(qcts_status status, const char* function) {
  if (static_cast<int>(status) < QCTS_OK || static_cast<int>(status) > QCTS_FAILED)
    throw ProviderFault(std::string(function) + "() returned " + std::to_string(static_cast<int>(status)) +
                        ", which is not a qcts_status");
  return status;
}

// Makes a call that returns a reason: call(why, why_size).
template <typename Call>
Support with_reason(const std::string& who, const char* function, Call call) {
  std::array<char, 512> why;
  why.fill('\x7f');
  why[0] = '\0';
  Support support;
  support.status = known(guarded(who, function, [&] { return call(why.data(), why.size()); }), function);
  if (std::memchr(why.data(), '\0', why.size()) == nullptr)
    throw ProviderFault(std::string(function) + "() wrote a reason without its NUL");
  support.reason = why.data();
  if (support.status == QCTS_OK) support.reason.clear();
  if (support.status != QCTS_OK && support.reason.empty())
    throw ProviderFault(std::string(function) + "() refused without a reason");
  return support;
}

}  // namespace

uint32_t float_control() {
#if defined(__SSE__)
  return _mm_getcsr() & ~kStickyFlags;
#else
  return 0;
#endif
}

void set_float_control([[maybe_unused]] uint32_t control) {
#if defined(__SSE__)
  _mm_setcsr(control & ~kStickyFlags);
#endif
}

std::string float_control_change(uint32_t before, uint32_t after) {
  if (before == after) return {};
  std::array<char, 64> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "MXCSR 0x%04x -> 0x%04x", before, after);
  std::string text = numbers.data(), names;
  const uint32_t changed = before ^ after;
  const auto add = [&](uint32_t bits, const char* name) {
    if (changed & bits) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(kFlushToZero, "flush to zero");
  add(kDenormalsAreZero, "denormals are zero");
  add(kRounding, "rounding mode");
  add(~(kFlushToZero | kDenormalsAreZero | kRounding), "exception masks");
  return text + " (" + names + ")";
}

Support provider_supports(const qcts_kernel& kernel, const qcts_problem& problem) {
  const RemoteProvider::Kernel* remote = RemoteProvider::kernel_of(kernel);
  return with_reason(kernel.variant, "supports", [&](char* why, size_t why_size) {
    return remote ? remote->owner->supports(*remote, problem, why, why_size)
                  : kernel.supports(&problem, why, why_size);
  });
}

Support provider_load_save(const Implementation& provider, const std::filesystem::path& input,
                           const std::filesystem::path& output) {
  return with_reason(provider.provider, "load_save", [&](char* why, size_t why_size) {
    return provider.load_save(input.c_str(), output.c_str(), why, why_size);
  });
}

Support provider_load_save(const qcts_provider& provider, const std::string& input,
                           const std::string& output) {
  return with_reason(provider.name, "load_save", [&](char* why, size_t why_size) {
    return provider.load_save(input.c_str(), output.c_str(), why, why_size);
  });
}

Support provider_run_program(const qcts_provider& provider, const qcts_program_call& call) {
  return with_reason(provider.name, "run_program",
                     [&](char* why, size_t why_size) { return provider.run_program(&call, why, why_size); });
}

uint64_t provider_workspace_bytes(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (kernel.workspace_bytes == nullptr) return 0;
  return guarded(kernel.variant, "workspace_bytes", [&] { return kernel.workspace_bytes(&problem); });
}

uint64_t provider_prepared_bytes(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (kernel.prepared_bytes == nullptr) return 0;
  return guarded(kernel.variant, "prepared_bytes", [&] { return kernel.prepared_bytes(&problem); });
}

qcts_status provider_prepare(const qcts_kernel& kernel, const qcts_problem& problem, void* prepared) {
  return known(guarded(kernel.variant, "prepare", [&] { return kernel.prepare(&problem, prepared); }),
               "prepare");
}

qcts_status provider_run(const qcts_kernel& kernel, const qcts_problem& problem) {
  const RemoteProvider::Kernel* remote = RemoteProvider::kernel_of(kernel);
  const auto call = [&] { return remote ? remote->owner->run(*remote, problem) : kernel.run(&problem); };
  return known(guarded(kernel.variant, "run", call), "run");
}

std::string provider_failure(const qcts_kernel& kernel) {
  constexpr size_t kReach = offsetof(qcts_kernel, failure) + sizeof kernel.failure;
  if (kernel.struct_size < kReach || kernel.failure == nullptr) return {};
  std::array<char, 2048> why;
  why.fill('\x7f');
  why[0] = '\0';
  guarded(kernel.variant, "failure", [&] {
    kernel.failure(why.data(), why.size());
    return 0;
  });
  if (std::memchr(why.data(), '\0', why.size()) == nullptr)
    throw ProviderFault("failure() wrote a reason without its NUL");
  return why[0] == '\0' ? "" : std::string(": ") + why.data();
}

}  // namespace qcts
