// SPDX-License-Identifier: BSD-3-Clause
// Protects what a kernel may count on between prepare() and run(), and what its claims promise: each of these
// kernels is right in a first call, and breaks one sentence of the header.
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/judge/judge.h"
#include "suites/providers/scalar_kernel_test.h"

namespace qcts {
namespace {

using testing::HasSubstr;

// prepare() stores this, and the planes after it, one after the other.
struct Stored {
  uint32_t threads;
  int64_t m;
  char padding[48];
};

uint64_t plane_bytes(const qcts_plane& plane) {
  uint64_t bytes = plane.dtype == QCTS_F32 ? 4 : 1;
  for (uint32_t d = 0; d < plane.ndim; ++d) bytes *= static_cast<uint64_t>(plane.shape[d]);
  return bytes;
}

uint64_t bytes_to_prepare(const qcts_problem* problem) {
  uint64_t bytes = sizeof(Stored) + 128;
  for (uint32_t i = 0; i < problem->n_planes; ++i) bytes += plane_bytes(problem->planes[i]) + 8;
  return bytes;
}

qcts_status store(const qcts_problem* problem, char* to) {
  const Stored head{problem->threads, problem->m, {}};
  std::memcpy(to, &head, sizeof head);
  to += sizeof head;
  for (uint32_t i = 0; i < problem->n_planes; ++i) {
    std::memcpy(to, problem->planes[i].data, plane_bytes(problem->planes[i]));
    to += (plane_bytes(problem->planes[i]) + 7) / 8 * 8;
  }
  return QCTS_OK;
}

qcts_status prepare(const qcts_problem* problem, void* to) {
  std::memset(to, 0, bytes_to_prepare(problem));
  return store(problem, static_cast<char*>(to));
}

char* at_128(const void* address) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<char*>((place + 127) / 128 * 128);
}
qcts_status prepare_at_128(const qcts_problem* problem, void* to) {
  std::memset(to, 0, bytes_to_prepare(problem));
  return store(problem, at_128(to));
}

// Computes with the planes stored at `from`, but for the one with this name.
qcts_status run_stored(const qcts_problem* problem, const char* from, const char* except = "") {
  std::vector<qcts_plane> planes(problem->planes, problem->planes + problem->n_planes);
  from += sizeof(Stored);
  for (qcts_plane& plane : planes) {
    if (std::strcmp(plane.name, except) != 0) plane.data = const_cast<char*>(from);
    from += (plane_bytes(plane) + 7) / 8 * 8;
  }
  qcts_problem stored = *problem;
  stored.planes = planes.data();
  stored.prepared = nullptr;
  return scalar_kernel(QCTS_OP_LINEAR).run(&stored);
}

void change_last_bit(const qcts_problem* problem, int64_t row) {
  static_cast<char*>(problem->y)[row * problem->ldy_bytes] ^= 1;
}

qcts_status run_prepared(const qcts_problem* p) {
  return run_stored(p, static_cast<const char*>(p->prepared));
}
qcts_status run_at_128(const qcts_problem* p) { return run_stored(p, at_128(p->prepared)); }
qcts_status run_with_scales_of_planes(const qcts_problem* p) {
  return run_stored(p, static_cast<const char*>(p->prepared), "scale");
}
// Spoils the first element of y where prepare() was called with another field than run() is.
template <auto stored, auto asked>
qcts_status run_with_field_of_prepare(const qcts_problem* p) {
  Stored head;
  std::memcpy(&head, p->prepared, sizeof head);
  const qcts_status status = run_prepared(p);
  if (head.*stored != p->*asked) std::memset(p->y, 0, 4);
  return status;
}
constexpr auto run_with_threads_of_prepare =
    run_with_field_of_prepare<&Stored::threads, &qcts_problem::threads>;
constexpr auto run_with_m_of_prepare = run_with_field_of_prepare<&Stored::m, &qcts_problem::m>;
qcts_status run_by_alignment(const qcts_problem* p) {
  const qcts_status status = scalar_kernel(QCTS_OP_LINEAR).run(p);
  if (reinterpret_cast<uintptr_t>(p->x) % 64 != 0) change_last_bit(p, 0);
  return status;
}
qcts_status run_many_rows_otherwise(const qcts_problem* p) {
  const qcts_status status = scalar_kernel(QCTS_OP_LINEAR).run(p);
  if (p->m > 33) change_last_bit(p, 0);
  return status;
}
qcts_status run_one_bit_off(const qcts_problem* p) {
  const qcts_status status = scalar_kernel(QCTS_OP_LINEAR).run(p);
  for (int64_t row = 0; row < p->m; ++row) change_last_bit(p, row);
  return status;
}

struct Broken {
  const char* name;
  qcts_status (*run)(const qcts_problem*);
  qcts_status (*prepare)(const qcts_problem*, void*);
  uint32_t claims;
  const char* said;  // "": right
  Kind kind = Kind::numerics;
};

class Promises : public testing::TestWithParam<Broken> {};

Verdict verdict_of(const Broken& broken, uint32_t claims) {
  qcts_kernel kernel = scalar_kernel(QCTS_OP_LINEAR);
  kernel.run = broken.run;
  kernel.numerics.accumulator = QCTS_F32;  // the last bit of y may then be another
  kernel.claims = (kernel.claims & ~uint32_t{QCTS_CLAIM_BATCH_INVARIANT | QCTS_CLAIM_BIT_EXACT}) | claims;
  if (broken.prepare) {
    kernel.prepared_bytes = bytes_to_prepare;
    kernel.prepare = broken.prepare;
  }
  const Implementation implementation{"acme", &kernel};
  Case c;
  c.id = {broken.kind, Op::linear, "int8_row", "a"};
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{Generator::noise, {DType::float32, 6, 40}, 40, 1, {}}};
  c.implementation = &implementation;
  JudgeContext context;
  context.diagnose = true;
  return judge(c, context);
}

TEST_P(Promises, AreHeld) {
  const Verdict verdict = verdict_of(GetParam(), GetParam().claims);
  const bool is_right = *GetParam().said == 0;
  EXPECT_EQ(verdict.status, is_right ? Status::pass : Status::fail) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr(GetParam().said));
}

TEST_P(Promises, OfClaimsBindNobodyWithoutThem) {
  if (GetParam().claims == 0) return;
  EXPECT_EQ(verdict_of(GetParam(), 0).status, Status::pass);
}

INSTANTIATE_TEST_SUITE_P(
    Each, Promises,
    testing::Values(Broken{"right", run_prepared, prepare, 0, ""},
                    Broken{"planes", run_with_scales_of_planes, prepare, 0,
                           "wrong only with the planes overwritten and the prepared weight moved"},
                    Broken{"address", run_at_128, prepare_at_128, 0,
                           "wrong only with the planes overwritten and the prepared weight moved"},
                    Broken{"alignment", run_by_alignment, nullptr, QCTS_CLAIM_BATCH_INVARIANT,
                           "claims to be batch-invariant, but with buffers"},
                    Broken{"rows", run_many_rows_otherwise, nullptr, QCTS_CLAIM_BATCH_INVARIANT,
                           "claims to be batch-invariant, but row 0 of 40 comes out differently on its own"},
                    Broken{"exact", run_one_bit_off, nullptr, QCTS_CLAIM_BIT_EXACT,
                           "claims to be bit-exact, but y: row"},
                    Broken{"threads", run_with_threads_of_prepare, prepare, 0,
                           "wrong only with prepare() on 1 thread and run() on"},
                    Broken{"right_alone", run_prepared, prepare, 0, "", Kind::determinism},
                    Broken{"m", run_with_m_of_prepare, prepare, 0,
                           "wrong for row 0 alone with the weight that was prepared for 40 rows, but right "
                           "with the weight prepared for a single row",
                           Kind::determinism}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace qcts
