// SPDX-License-Identifier: BSD-3-Clause
// The buffers in which numerics asks a problem again: each list begins with the most irregular ones, and the
// first that the kernel accepts are used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suites/providers/kernel_run.h"

namespace qcts {

inline constexpr uint32_t kLargeThreads = 3;  // of large problems; not a power of two

// Returns true for more than 2^22 products or elements. Determinism has no such problems.
bool is_large(const KernelInput& input);

// One to seven elements off alignment, with gaps between rows. Large problems have several threads.
std::vector<RunOptions> irregular_buffers(const KernelInput& input, uint32_t threads);
// Cover the rest: aligned buffers with gaps between rows, some of them wider than 16 bits count, or aligned
// inputs without aligned outputs and the reverse; planes in another order; and more threads than the run uses
// or this machine has.
std::vector<RunOptions> many_threads(const KernelInput& input, uint32_t threads);
// Every buffer at the edge of the memory that the kernel may touch: all ends, and for some shapes all
// beginnings, before which kernels read more rarely. Each of these is asked.
std::vector<RunOptions> at_edges(const KernelInput& input, uint32_t threads);

// Returns "buffers 3 elements off alignment, gaps between rows, 8 threads"; `threads` are the run's own.
std::string described(const RunOptions& options, uint32_t threads);

}  // namespace qcts
