// SPDX-License-Identifier: BSD-3-Clause
// The planted faults. The environment variable QCTS_MUTANT names them, joined by '+'.
// The variable is read when the library is loaded. Without it, every op is correct.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/abi/problem.h"
#include "kernels/abi/qcts_kernel.h"
#include "kernels/families/checks.h"

namespace qcts::mutants {

enum class Fault : uint16_t {
#define QCTS_MUTANT(kind, id, set, what, public_case) id,
#include "suites/selftest/mutants/mutants.inc"
#undef QCTS_MUTANT
  count
};

// Indexed by Fault. Constant once the library is loaded.
extern const std::array<bool, static_cast<size_t>(Fault::count)> kPlanted;
inline bool planted(Fault fault) { return kPlanted[static_cast<size_t>(fault)]; }
// Returns a name in the environment variable that is not in mutants.inc, or "".
std::string_view unknown_fault();

// Returns true if a planted fault affects the kernel of this op and scheme, or if no fault is planted.
bool strikes(uint32_t op, std::string_view scheme);

// Returns the kernel entry of an operation that has one correct answer.
constexpr qcts_kernel exact_kernel(uint32_t op, const char* scheme, decltype(qcts_kernel::supports) supports,
                                   decltype(qcts_kernel::run) run) {
  qcts_kernel kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.op = op;
  kernel.scheme = scheme;
  kernel.variant = "scalar";
  kernel.claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT;
  kernel.supports = supports;
  kernel.run = run;
  return kernel;
}

// Returns the kernel entry of a linear. The caller sets its roundings.
constexpr qcts_kernel linear_kernel(const char* scheme, decltype(qcts_kernel::supports) supports,
                                    decltype(qcts_kernel::run) run) {
  qcts_kernel kernel = exact_kernel(QCTS_OP_LINEAR, scheme, supports, run);
  kernel.claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT;
  kernel.numerics.struct_size = sizeof kernel.numerics;
  return kernel;
}

// Implements supports() for a kernel that accepts every problem of its scheme.
template <const qcts_kernel& kKernel>
qcts_status supports_problem(const qcts_problem* problem, char* why, size_t why_size) {
  return check_problem(kKernel, problem, why, why_size);
}

// Returns a kernel's entry for the host.
// If a planted fault requires this, the entry has fewer claims or its own layout.
qcts_kernel entry_of(const qcts_kernel& kernel);

extern const qcts_kernel quantize_int8_row, quantize_int4_tinygemm, quantize_fp8_row;
extern const qcts_kernel dequantize_int8_row, dequantize_int4_tinygemm, dequantize_fp8_row;
extern const qcts_kernel pack_int4_tinygemm, unpack_int4_tinygemm;
extern const qcts_kernel linear_int8_row, linear_int4_tinygemm, linear_fp8_row;

// Returns QCTS_CLAIM_KEEPS_BYTES, or 0 if QCTS_MUTANT_CLAIMS is "none".
uint32_t file_claims();

// Reads a checkpoint and writes it again with the planted fault of kind `format`.
qcts_status load_save(const char* input_path, const char* output_path, char* why, size_t why_size);

}  // namespace qcts::mutants
