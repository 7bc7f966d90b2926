// SPDX-License-Identifier: BSD-3-Clause
// Tests that the host is protected from a provider's calls: the floating-point control state is restored, and
// violations of the ABI become faults of the provider, not wrong verdicts.
#include "suites/providers/provider_call.h"

#include <cstddef>
#include <cstdio>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/providers/load_guarded.h"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace qcts {
namespace {

qcts_status supports_ok(const qcts_problem*, char*, size_t) { return QCTS_OK; }
qcts_status run_ok(const qcts_problem*) { return QCTS_OK; }

qcts_kernel kernel() {
  qcts_kernel k{};
  k.struct_size = sizeof k;
  k.variant = "scalar";
  k.supports = supports_ok;
  k.run = run_ok;
  return k;
}

const qcts_problem kProblem{};

// Returns the fault's message; empty if there was none.
template <typename Call>
std::string fault_of(Call call) {
  try {
    call();
    return {};
  } catch (const ProviderFault& fault) {
    return fault.what();
  }
}

TEST(ProviderCall, AbsentFunctionsMeanZeroBytes) {
  EXPECT_EQ(provider_workspace_bytes(kernel(), kProblem), 0u);
  EXPECT_EQ(provider_prepared_bytes(kernel(), kProblem), 0u);
  EXPECT_EQ(provider_run(kernel(), kProblem), QCTS_OK);
}

TEST(ProviderCall, TellsWhyARunFailed) {
  qcts_kernel k = kernel();
  EXPECT_EQ(provider_failure(k), "") << "gives no reason";
  k.failure = [](char* why, size_t why_size) { std::snprintf(why, why_size, "reads x+64"); };
  EXPECT_EQ(provider_failure(k), ": reads x+64");
  k.struct_size = offsetof(qcts_kernel, failure);
  EXPECT_EQ(provider_failure(k), "") << "a kernel of 0.10";
  k.struct_size = sizeof k;
  k.failure = [](char* why, size_t why_size) { std::memset(why, 'x', why_size); };
  EXPECT_THAT(fault_of([&] { provider_failure(k); }), testing::HasSubstr("without its NUL"));
}

#if defined(__SSE__)
TEST(ProviderCall, AChangedControlStateIsAFaultAndIsRestored) {
  qcts_kernel k = kernel();
  k.run = [](const qcts_problem*) {
    _mm_setcsr(_mm_getcsr() | 0x8000u | 0x2000u);
    return QCTS_OK;
  };
  const uint32_t before = float_control();
  EXPECT_THAT(
      fault_of([&] { provider_run(k, kProblem); }),
      testing::AllOf(testing::HasSubstr("run()"), testing::HasSubstr("flush to zero, rounding mode")));
  EXPECT_EQ(float_control(), before);
}

TEST(ProviderCall, AChangedPrecisionOfX87IsAFaultAndIsRestored) {
  qcts_kernel k = kernel();
  k.run = [](const qcts_problem*) {
    const uint16_t of_53_bits = 0x27f;
    asm volatile("fldcw %0" : : "m"(of_53_bits));
    return QCTS_OK;
  };
  const uint32_t before = float_control();
  EXPECT_THAT(fault_of([&] { provider_run(k, kProblem); }),
              testing::HasSubstr("x87 control word 0x037f -> 0x027f"));
  EXPECT_EQ(float_control(), before);
}

TEST(LoadGuarded, WhatLoadingChangesIsToldAndRestored) {
  const uint32_t before = float_control();
  Registry changing, right;
  EXPECT_THAT(load_guarded(changing, build_path("lib/selftest/qcts_faulty_sets_ftz_at_load.so")),
              testing::HasSubstr("flush to zero"));
  EXPECT_EQ(float_control(), before);
  EXPECT_EQ(changing.providers().size(), 1u);
  EXPECT_EQ(load_guarded(right, build_path("lib/selftest/qcts_faulty_none.so")), "");
  EXPECT_THROW(load_guarded(right, "/nonexistent/libacme.so"), std::runtime_error);
}

TEST(ProviderCall, StickyFlagsMayChange) {
  qcts_kernel k = kernel();
  k.run = [](const qcts_problem*) {
    _mm_setcsr(_mm_getcsr() | 0x21u);
    return QCTS_OK;
  };
  EXPECT_EQ(fault_of([&] { provider_run(k, kProblem); }), "");
}

TEST(ProviderCall, TheStateIsRestoredAlsoAfterAnException) {
  qcts_kernel k = kernel();
  k.run = [](const qcts_problem*) -> qcts_status {
    _mm_setcsr(_mm_getcsr() | 0x40u);
    throw std::runtime_error("x");
  };
  const uint32_t before = float_control();
  EXPECT_NE(fault_of([&] { provider_run(k, kProblem); }), "");
  EXPECT_EQ(float_control(), before);
}
#endif

TEST(ProviderCall, ExceptionsAreFaults) {
  qcts_kernel k = kernel();
  k.run = [](const qcts_problem*) -> qcts_status { throw std::runtime_error("out of luck"); };
  EXPECT_THAT(fault_of([&] { provider_run(k, kProblem); }), testing::HasSubstr("out of luck"));
  k.run = [](const qcts_problem*) -> qcts_status { throw 7; };
  EXPECT_THAT(fault_of([&] { provider_run(k, kProblem); }), testing::HasSubstr("foreign type"));
}

TEST(ProviderCall, AnswersOutsideTheAbiAreFaults) {
  qcts_kernel k = kernel();
  k.run = [](const qcts_problem*) { return static_cast<qcts_status>(9); };
  EXPECT_THAT(fault_of([&] { provider_run(k, kProblem); }), testing::HasSubstr("9"));
  k.supports = [](const qcts_problem*, char*, size_t) { return QCTS_UNSUPPORTED; };
  EXPECT_THAT(fault_of([&] { provider_supports(k, kProblem); }), testing::HasSubstr("without a reason"));
  k.supports = [](const qcts_problem*, char* why, size_t size) {
    std::memset(why, 'a', size);
    return QCTS_UNSUPPORTED;
  };
  EXPECT_THAT(fault_of([&] { provider_supports(k, kProblem); }), testing::HasSubstr("NUL"));
}

TEST(ProviderCall, AReasonIsKept) {
  qcts_kernel k = kernel();
  k.supports = [](const qcts_problem*, char* why, size_t size) {
    std::snprintf(why, size, "k is odd");
    return QCTS_UNSUPPORTED;
  };
  const Support support = provider_supports(k, kProblem);
  EXPECT_EQ(support.status, QCTS_UNSUPPORTED);
  EXPECT_EQ(support.reason, "k is odd");
}

TEST(ProviderCall, AReasonKeepsToItsSize) {
  qcts_kernel k = kernel();
  k.supports = [](const qcts_problem*, char* why, size_t size) {
    std::snprintf(why, size, "k is odd, and n is even");
    if (size < 64) why[size] = 0;
    return QCTS_UNSUPPORTED;
  };
  EXPECT_THAT(
      [&] { provider_supports(k, kProblem); },
      testing::ThrowsMessage<ProviderFault>(testing::HasSubstr("wrote more of a reason than its 8 bytes")));
}

}  // namespace
}  // namespace qcts
