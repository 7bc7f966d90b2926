// The parts that table entries of one operation have in common, for the kernel files and for nothing else:
// every function has internal linkage, every entry is a constant.
#pragma once

#include "kernels/support.h"

namespace qcts {
namespace {

template <const qcts_kernel& kKernel>
qcts_status supports_problem(const qcts_problem* problem, char* why, size_t why_size) {
  return check_problem(kKernel, problem, why, why_size);
}

// Rows [first, last) of the problem's n.
using Rows = void (*)(const qcts_problem& problem, int64_t first, int64_t last);

template <Rows kRows>
void call_rows(void* context, int64_t first, int64_t last) {
  kRows(*static_cast<const qcts_problem*>(context), first, last);
}

template <const qcts_kernel& kKernel, Rows kRows>
qcts_status run_rows(const qcts_problem* problem) {
  if (check_run(kKernel, problem) != QCTS_OK) return QCTS_INVALID;
  qcts_problem copy = *problem;
  parallel_for(problem->threads, problem->n, 1, call_rows<kRows>, &copy);
  return QCTS_OK;
}

// An operation with one right answer, a row at a time, without workspace.
template <const qcts_kernel& kKernel, Rows kRows>
constexpr qcts_kernel exact_rows(qcts_op op, const char* scheme, const char* variant,
                                 const char* description) {
  return {.struct_size = sizeof(qcts_kernel),
          .op = static_cast<uint32_t>(op),
          .scheme = scheme,
          .variant = variant,
          .description = description,
          .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,
          .reserved = 0,
          .numerics = {},
          .supports = supports_problem<kKernel>,
          .workspace_bytes = nullptr,
          .prepared_bytes = nullptr,
          .prepare = nullptr,
          .run = run_rows<kKernel, kRows>};
}

[[maybe_unused]] const void* in_plane(const qcts_problem& p, const char* name) {
  return plane_data(p.planes, p.n_planes, name);
}

[[maybe_unused]] void* out_plane(const qcts_problem& p, const char* name) {
  return plane_data(p.out_planes, p.n_out_planes, name);
}

}  // namespace
}  // namespace qcts
