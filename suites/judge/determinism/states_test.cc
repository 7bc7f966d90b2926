// SPDX-License-Identifier: BSD-3-Clause
// Protects the judgement of kernels that remember what they must not: each fault below is right when it sees
// only one weight, one x and a fresh workspace.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/judge/judge.h"
#include "suites/providers/scalar_kernel_test.h"

namespace qcts {
namespace {

qcts_status true_answer(const qcts_problem* problem) { return scalar_kernel(QCTS_OP_LINEAR).run(problem); }

uint64_t one_word(const qcts_problem*) { return 64; }

// The planes of the weight that was prepared last.
std::vector<qcts_plane> last_prepared;
qcts_status remembers_last_weight(const qcts_problem* problem, void*) {
  last_prepared.assign(problem->planes, problem->planes + problem->n_planes);
  return QCTS_OK;
}
qcts_status runs_last_weight(const qcts_problem* problem) {
  qcts_problem with_last = *problem;
  with_last.planes = last_prepared.data();
  return true_answer(&with_last);
}

// Puts the planes' addresses into the prepared weight, as it should.
qcts_status prepares_own(const qcts_problem* problem, void* prepared) {
  std::memcpy(prepared, &problem->planes, sizeof problem->planes);
  return QCTS_OK;
}

// Adds what the workspace holds from the second call on, and so trusts that it is new.
qcts_status counts_in_workspace(const qcts_problem* problem) {
  const qcts_status status = true_answer(problem);
  constexpr uint64_t kMark = 0x1234567890abcdef;
  uint64_t held = 0;
  std::memcpy(&held, problem->workspace, sizeof held);
  if (held == kMark) static_cast<char*>(problem->y)[1] ^= 0x40;
  std::memcpy(problem->workspace, &kMark, sizeof kMark);
  return status;
}

// Keeps the answer for an x at the same place that begins and ends in the same way.
struct Kept {
  const void* x = nullptr;
  std::vector<char> ends, y;
} kept;
std::vector<char> ends_of(const qcts_problem* problem) {
  const char* x = static_cast<const char*>(problem->x);
  const int64_t bytes = problem->m * problem->ldx_bytes;
  std::vector<char> ends(x, x + 8);
  ends.insert(ends.end(), x + bytes - 8, x + bytes);
  return ends;
}
qcts_status keeps_answers(const qcts_problem* problem) {
  char* y = static_cast<char*>(problem->y);
  if (problem->x == kept.x && ends_of(problem) == kept.ends) {
    std::ranges::copy(kept.y, y);
    return QCTS_OK;
  }
  const qcts_status status = true_answer(problem);
  kept = {problem->x, ends_of(problem), {y, y + problem->m * problem->ldy_bytes}};
  return status;
}

// Keeps copies of the bias, or of the scales, for as long as they are at the same address.
struct Copy {
  const void* from = nullptr;
  std::vector<char> bytes;

  const void* of(const void* data, size_t count) {
    const char* first = static_cast<const char*>(data);
    if (from != data) *this = {data, {first, first + count}};
    return bytes.data();
  }
} kept_bias, kept_scales;
qcts_status keeps_bias(const qcts_problem* problem) {
  qcts_problem with_kept = *problem;
  if (problem->bias != nullptr)
    with_kept.bias = kept_bias.of(problem->bias, static_cast<size_t>(problem->n) * 2);
  return true_answer(&with_kept);
}
qcts_status keeps_scales(const qcts_problem* problem) {
  std::vector<qcts_plane> planes(problem->planes, problem->planes + problem->n_planes);
  for (qcts_plane& plane : planes)
    if (std::strcmp(plane.name, "scale") == 0)
      plane.data = const_cast<void*>(kept_scales.of(plane.data, static_cast<size_t>(problem->n) * 4));
  qcts_problem with_kept = *problem;
  with_kept.planes = planes.data();
  return true_answer(&with_kept);
}

// Takes y to have the dtype of the first call.
uint32_t kept_dtype = 0;
qcts_status keeps_dtype(const qcts_problem* problem) {
  if (kept_dtype == 0) kept_dtype = problem->y_dtype;
  return problem->y_dtype == kept_dtype ? true_answer(problem) : QCTS_OK;
}

// Rounds float32 answers for an x that it has answered in another type to that type, as a cache of answers
// would.
std::map<std::vector<char>, uint32_t> kept_types;  // by the bytes of x
qcts_status keeps_types(const qcts_problem* problem) {
  const qcts_status status = true_answer(problem);
  const char* x = static_cast<const char*>(problem->x);
  const std::vector<char> key(x, x + problem->m * problem->ldx_bytes);
  const auto [kept_type, is_new] = kept_types.try_emplace(key, problem->y_dtype);
  if (kept_type->second == problem->y_dtype || problem->y_dtype != QCTS_F32) return status;
  for (int64_t i = 0; i < problem->m * problem->n; ++i)
    std::memset(static_cast<char*>(problem->y) + i / problem->n * problem->ldy_bytes + i % problem->n * 4, 0,
                2);
  return status;
}

struct Memory {
  const char* name;
  qcts_status (*run)(const qcts_problem*);
  const char* reason;  // "": right
  qcts_status (*prepare)(const qcts_problem*, void*) = nullptr;
  bool has_workspace = false;
};
const Memory kMemories[] = {
    {"none", true_answer, ""},
    {"own_weight", true_answer, "", prepares_own},
    {"last_weight", runs_last_weight, "wrong after another weight was prepared", remembers_last_weight},
    {"workspace", counts_in_workspace, "wrong with the workspace as the last call left it", nullptr, true},
    {"answers", keeps_answers, "wrong when one element of x has changed at the same address"},
    {"dtype", keeps_dtype, "wrong in a problem of float32 that follows others"},
    {"types", keeps_types, "wrong when the same data is asked for in float32 and bfloat16"},
    {"bias", keeps_bias, "wrong when the bias has changed at the same address"},
    {"scales", keeps_scales, "wrong once the weight's last scale changed at the same address"},
};

class StateOf : public testing::TestWithParam<Memory> {};

TEST_P(StateOf, IsJudged) {
  const Memory& memory = GetParam();
  kept = {};
  kept_bias = kept_scales = {};
  kept_dtype = 0;
  kept_types.clear();
  qcts_kernel kernel = scalar_kernel(QCTS_OP_LINEAR);
  kernel.claims = QCTS_CLAIM_SCHEDULES;  // one call at a time: these faults are not about threads
  kernel.run = memory.run;
  kernel.prepare = memory.prepare;
  kernel.prepared_bytes = memory.prepare ? one_word : nullptr;
  if (memory.has_workspace) kernel.workspace_bytes = one_word;
  const Implementation implementation{"acme", &kernel};
  Case c;
  c.id = {Kind::determinism, Op::linear, "int8_row", "noise"};
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{Generator::noise, {DType::bfloat16, 37, 216}, 3, 1, {}}};
  c.implementation = &implementation;
  const Verdict verdict = judge(c, {});
  const bool is_right = std::string(memory.reason).empty();
  EXPECT_EQ(verdict.status, is_right ? Status::pass : Status::fail) << verdict.reason;
  EXPECT_THAT(verdict.reason, testing::StartsWith(memory.reason));
}

INSTANTIATE_TEST_SUITE_P(Memory, StateOf, testing::ValuesIn(kMemories),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace qcts
