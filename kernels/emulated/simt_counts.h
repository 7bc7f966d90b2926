// SPDX-License-Identifier: BSD-3-Clause
// Counts the sectors and bank turns of a warp's accesses (simt_checks.h).
#pragma once

#include "kernels/emulated/simt.h"

namespace qcts::simt {

// Counts the running thread's access at `site`, an address in the kernel's code.
void count_access(Space space, const void* at, uint32_t bytes, Use use, const void* site);
// Adds the accesses of a block's warps to the counts.
void finish_counts();

}  // namespace qcts::simt
