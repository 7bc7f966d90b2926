// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/guarded_call.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace qcts {
namespace {

constexpr uint32_t kStickyFlags = 0x3f;  // Intel SDM vol. 1, 10.2.3: MXCSR bits 0 to 5
constexpr uint32_t kMxcsr = 0xffff;      // the rest is the control word of the x87 unit
constexpr uint32_t kDenormalsAreZero = 1u << 6, kRounding = 3u << 13, kFlushToZero = 1u << 15;

// A reason is asked for again with this few bytes.
constexpr size_t kShortReason = 8;

// Runs `call` and always restores the control state.
template <typename Call>
auto guarded(const std::string& who, const char* function, Call call) {
  const uint32_t before = float_control();
  std::string thrown;
  decltype(call()) answer{};
  try {
    answer = call();
  } catch (const ProviderFault&) {  // from a provider in another process
    set_float_control(before);
    throw;
  } catch (const HostFailure&) {
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

}  // namespace

uint32_t float_control() {
#if defined(__SSE__)
  uint16_t x87 = 0;
  asm volatile("fnstcw %0" : "=m"(x87));
  return (_mm_getcsr() & kMxcsr & ~kStickyFlags) | static_cast<uint32_t>(x87) << 16;
#else
  return 0;
#endif
}

void set_float_control([[maybe_unused]] uint32_t control) {
#if defined(__SSE__)
  _mm_setcsr(control & kMxcsr & ~kStickyFlags);
  const auto x87 = static_cast<uint16_t>(control >> 16);
  if (x87 != 0) asm volatile("fldcw %0" : : "m"(x87));
#endif
}

FlushedSubnormals::FlushedSubnormals() : before_(float_control()) {
  set_float_control(before_ | kFlushToZero | kDenormalsAreZero);
}

FlushedSubnormals::~FlushedSubnormals() { set_float_control(before_); }

std::string float_control_change(uint32_t before, uint32_t after) {
  if (before == after) return {};
  std::array<char, 96> numbers{};
  if (((before ^ after) & kMxcsr) == 0) {
    std::snprintf(numbers.data(), numbers.size(), "x87 control word 0x%04x -> 0x%04x", before >> 16,
                  after >> 16);
    return numbers.data();
  }
  std::snprintf(numbers.data(), numbers.size(), "MXCSR 0x%04x -> 0x%04x", before & kMxcsr, after & kMxcsr);
  std::string text = numbers.data(), names;
  const uint32_t changed = (before ^ after) & kMxcsr;
  const auto add = [&](uint32_t bits, const char* name) {
    if (changed & bits) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(kFlushToZero, "flush to zero");
  add(kDenormalsAreZero, "denormals are zero");
  add(kRounding, "rounding mode");
  add(~(kFlushToZero | kDenormalsAreZero | kRounding), "exception masks");
  return text + " (" + names + ")";
}

Support guarded_support(const std::string& who, const char* function,
                        const std::function<qcts_status(char* why, size_t why_size)>& call) {
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
  if (support.status == QCTS_OK || support.reason.size() < kShortReason) return support;
  why.fill('\x7f');
  guarded(who, function, [&] { return call(why.data(), kShortReason); });
  if (std::any_of(why.begin() + kShortReason, why.end(), [](char c) { return c != '\x7f'; }))
    throw ProviderFault(std::string(function) + "() wrote more of a reason than its " +
                        std::to_string(kShortReason) + " bytes");
  return support;
}

qcts_status guarded_status(const std::string& who, const char* function,
                           const std::function<qcts_status()>& call) {
  return known(guarded(who, function, call), function);
}

uint64_t guarded_bytes(const std::string& who, const char* function, const std::function<uint64_t()>& call) {
  return guarded(who, function, call);
}

std::string guarded_failure(const qcts_kernel& kernel) {
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
