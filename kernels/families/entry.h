// SPDX-License-Identifier: BSD-3-Clause
// Builds rows of the list of kernels. A row is a constant qcts_kernel.
// The functions of a row check the problem and then call the functions of the kernel.
#pragma once

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/machine/parallel.h"

// Gives `const qcts_kernel qcts_kernel_<op>_<family>_<variant>` external linkage.
// A file of rows is compiled once for each row (CMakeLists.txt),
// so that the code of a kernel does not depend on its neighbours.
// Only the row named QCTS_ROW is then external. The other rows are internal, unused and dropped.
#ifdef QCTS_ROW
extern const qcts_kernel QCTS_ROW;
#else
#define QCTS_KERNEL(op, scheme, variant) extern const qcts_kernel qcts_kernel_##op##_##scheme##_##variant;
#define QCTS_DEVICE_KERNEL(op, scheme, variant) QCTS_KERNEL(op, scheme, variant)
#include "kernels/kernels.inc"
#endif

namespace qcts {
namespace {

template <const qcts_kernel& kKernel>
qcts_status supports_problem(const qcts_problem* problem, char* why, size_t why_size) {
  return check_problem(kKernel, problem, why, why_size);
}

// Each of these functions runs the checks that its call needs, and then the function of the kernel's file.
template <const qcts_kernel& kKernel, void (*kPrepare)(const qcts_problem*, void*)>
qcts_status prepare_checked(const qcts_problem* problem, void* prepared) {
  if (check_prepare(kKernel, problem) != QCTS_OK) return QCTS_INVALID;
  kPrepare(problem, prepared);
  return QCTS_OK;
}
template <const qcts_kernel& kKernel, void (*kRun)(const qcts_problem*)>
qcts_status run_checked(const qcts_problem* problem) {
  if (check_run(kKernel, problem) != QCTS_OK) return QCTS_INVALID;
  if (has_no_rows(kKernel.op, *problem)) return QCTS_OK;
  kRun(problem);
  return QCTS_OK;
}

// Does the same for kernels whose own supports() checks more than check_problem().
template <const qcts_kernel& kKernel, void (*kRun)(const qcts_problem*)>
qcts_status run_supported(const qcts_problem* problem) {
  return kKernel.supports(problem, nullptr, 0) == QCTS_OK ? run_checked<kKernel, kRun>(problem)
                                                          : QCTS_INVALID;
}

// The functions of an entry. Those for the workspace and the packed weight are optional.
struct Calls {
  decltype(qcts_kernel::supports) supports;
  decltype(qcts_kernel::run) run;
  decltype(qcts_kernel::workspace_bytes) workspace_bytes = nullptr;
  decltype(qcts_kernel::prepared_bytes) prepared_bytes = nullptr;
  decltype(qcts_kernel::prepare) prepare = nullptr;
  decltype(qcts_kernel::failure) failure = nullptr;
};

constexpr qcts_kernel entry_of(qcts_op op, const char* scheme, const char* variant, const char* description,
                               uint32_t claims, const qcts_numerics& numerics, const Calls& calls) {
  return {.struct_size = sizeof(qcts_kernel),
          .op = static_cast<uint32_t>(op),
          .scheme = scheme,
          .variant = variant,
          .description = description,
          .claims = claims,
          .reserved = 0,
          .numerics = numerics,
          .supports = calls.supports,
          .workspace_bytes = calls.workspace_bytes,
          .prepared_bytes = calls.prepared_bytes,
          .prepare = calls.prepare,
          .run = calls.run,
          .fused_sums = {},
          .failure = calls.failure,
          .reads_layouts = nullptr,
          .align_bytes = 0,
          .row_align_bytes = 0};
}

// Returns the entry of an operation with one correct answer.
// The entry does not claim batch invariance:
// if a policy scales all of x at once, rows of x affect each other.
constexpr qcts_kernel exact_entry(qcts_op op, const char* scheme, const char* variant,
                                  const char* description, const Calls& calls) {
  return entry_of(op, scheme, variant, description,
                  QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT, {}, calls);
}

// Returns the numerics of a linear whose scales act on sums of codes.
// Such a linear rounds x (if x_cast is given), the sums in `accumulator`, and y, but nothing else.
constexpr qcts_numerics numerics_of_sums(qcts_dtype accumulator, uint32_t x_cast = QCTS_NONE,
                                         uint32_t flags = 0) {
  return {.struct_size = sizeof(qcts_numerics),
          .x_cast = x_cast,
          .scale_cast = QCTS_NONE,
          .weight_cast = QCTS_NONE,
          .product_cast = QCTS_NONE,
          .accumulator = static_cast<uint32_t>(accumulator),
          .partial_cast = QCTS_NONE,
          .output_cast = QCTS_NONE,
          .flags = QCTS_NUM_SCALE_AFTER_SUM | flags,
          .reserved = 0};
}

constexpr qcts_kernel linear_entry(const char* scheme, const char* variant, const char* description,
                                   const qcts_numerics& numerics, const Calls& calls) {
  return entry_of(QCTS_OP_LINEAR, scheme, variant, description,
                  QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT,
                  numerics, calls);
}
constexpr qcts_kernel linear_entry(const char* scheme, const char* variant, const char* description,
                                   qcts_dtype accumulator, const Calls& calls) {
  return linear_entry(scheme, variant, description, numerics_of_sums(accumulator), calls);
}

// Returns an entry with the supports() of `like`, for a family whose members need different code.
// All other calls are forwarded to kEntryOf(problem).
template <const qcts_kernel& (*kEntryOf)(const qcts_problem&)>
constexpr qcts_kernel entry_by_member(const qcts_kernel& like) {
  qcts_kernel entry = like;
  entry.workspace_bytes = [](const qcts_problem* p) { return kEntryOf(*p).workspace_bytes(p); };
  entry.prepared_bytes = [](const qcts_problem* p) { return kEntryOf(*p).prepared_bytes(p); };
  entry.prepare = [](const qcts_problem* p, void* prepared) { return kEntryOf(*p).prepare(p, prepared); };
  entry.run = [](const qcts_problem* p) { return kEntryOf(*p).run(p); };
  return entry;
}

// Returns the problem without its activation policy, as the checks of planes and dtypes expect it.
[[maybe_unused]] qcts_problem as_weight_only(const qcts_problem& problem) {
  qcts_problem copy = problem;
  copy.activation = "weight_only";
  return copy;
}

// For a linear that quantizes x itself.
// Checks its own policy, then everything that a weight-only linear checks.
template <const qcts_kernel& kKernel>
qcts_status supports_policy(const qcts_problem* problem, char* why, size_t why_size) {
  if (!lists_policy(kKernel.scheme, problem->activation))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy %s",
                  problem->activation == nullptr ? "NULL" : problem->activation);
  if (check_given_scale(kKernel, problem, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  const qcts_problem copy = as_weight_only(*problem);
  return check_problem(kKernel, &copy, why, why_size);
}

// Computes rows [first, last) of the n rows of the problem.
using Rows = void (*)(const qcts_problem& problem, int64_t first, int64_t last);

template <Rows kRows>
void call_rows(void* context, int64_t first, int64_t last) {
  kRows(*static_cast<const qcts_problem*>(context), first, last);
}

template <const qcts_kernel& kKernel, Rows kRows>
qcts_status run_rows(const qcts_problem* problem) {
  if (check_run(kKernel, problem) != QCTS_OK) return QCTS_INVALID;
  if (has_no_rows(kKernel.op, *problem)) return QCTS_OK;
  qcts_problem copy = *problem;
  parallel_for(problem->threads, problem->n, 1, call_rows<kRows>, &copy);
  return QCTS_OK;
}

// Returns the entry of an operation with one correct answer that is computed row by row, without workspace.
template <const qcts_kernel& kKernel, Rows kRows>
constexpr qcts_kernel exact_rows(qcts_op op, const char* scheme, const char* variant,
                                 const char* description) {
  return exact_entry(op, scheme, variant, description, {supports_problem<kKernel>, run_rows<kKernel, kRows>});
}

template <const qcts_kernel& kKernel>
qcts_status supports_activation(const qcts_problem* problem, char* why, size_t why_size) {
  return check_activation(kKernel, problem, why, why_size);
}

template <const qcts_kernel& kKernel>
qcts_status check_run_activation(const qcts_problem* problem) {
  if (kKernel.supports(problem, nullptr, 0) != QCTS_OK || problem->n_out_planes == 0 ||
      !gives_scale(kKernel, *problem))
    return QCTS_INVALID;
  if (problem->m == 0) return QCTS_OK;
  if (problem->x == nullptr) return QCTS_INVALID;
  for (uint32_t i = 0; i < problem->n_out_planes; ++i)
    if (problem->out_planes[i].data == nullptr) return QCTS_INVALID;
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, void (*kRun)(const qcts_problem*)>
qcts_status run_checked_activation(const qcts_problem* problem) {
  if (check_run_activation<kKernel>(problem) != QCTS_OK) return QCTS_INVALID;
  if (problem->m > 0) kRun(problem);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, Rows kRows>
qcts_status run_activation(const qcts_problem* problem) {
  if (check_run_activation<kKernel>(problem) != QCTS_OK) return QCTS_INVALID;
  qcts_problem copy = *problem;
  parallel_for(problem->threads, problem->m, 1, call_rows<kRows>, &copy);
  return QCTS_OK;
}

// Returns the entry of quantize_activation that computes rows [first, last) of the m rows of the problem.
// The entry serves the policies that the scheme lists.
template <const qcts_kernel& kKernel, Rows kRows>
constexpr qcts_kernel activation_rows(const char* scheme, const char* variant, const char* description) {
  return exact_entry(QCTS_OP_QUANTIZE_ACTIVATION, scheme, variant, description,
                     {supports_activation<kKernel>, run_activation<kKernel, kRows>});
}
// Does the same for a function that divides the problem itself.
template <const qcts_kernel& kKernel, void (*kRun)(const qcts_problem*)>
constexpr qcts_kernel activation_whole(const char* scheme, const char* variant, const char* description) {
  return exact_entry(QCTS_OP_QUANTIZE_ACTIVATION, scheme, variant, description,
                     {supports_activation<kKernel>, run_checked_activation<kKernel, kRun>});
}

[[maybe_unused]] const void* in_plane(const qcts_problem& p, const char* name) {
  return plane_data(p.planes, p.n_planes, name);
}

[[maybe_unused]] void* out_plane(const qcts_problem& p, const char* name) {
  return plane_data(p.out_planes, p.n_out_planes, name);
}

}  // namespace
}  // namespace qcts
