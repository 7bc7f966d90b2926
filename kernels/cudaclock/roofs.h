// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the clock library (README.md), as run() of their rows.
#pragma once

#include <stdint.h>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::cudaclock {

qcts_status run_empty_sm80(const qcts_problem* problem);
qcts_status run_read_sm80(const qcts_problem* problem);
qcts_status run_bf16_sm80(const qcts_problem* problem);
qcts_status run_s8_sm80(const qcts_problem* problem);
qcts_status run_read_sm90a(const qcts_problem* problem);
qcts_status run_bf16_sm90a(const qcts_problem* problem);
qcts_status run_e4m3_sm90a(const qcts_problem* problem);
qcts_status run_s8_sm90a(const qcts_problem* problem);

// Bytes that a kernel reads.
inline uint64_t bytes_to_read(const qcts_problem& problem) {
  return problem.n_planes == 0 ? 0 : static_cast<uint64_t>(problem.planes[0].shape[0]);
}

// How often each of `workers` has to do `operations` operations, so that together they do at least as many as
// the problem says.
inline uint64_t turns_of(const qcts_problem& problem, uint64_t workers, uint64_t operations) {
  const uint64_t wanted = static_cast<uint64_t>(problem.k) << 20, all = workers * operations;
  return (wanted + all - 1) / all;
}

}  // namespace qcts::cudaclock
