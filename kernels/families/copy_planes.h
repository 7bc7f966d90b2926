// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Of a problem that packs or unpacks: every plane but `name`, as it is.
void copy_planes_but(const qcts_problem& problem, const char* name);

}  // namespace qcts
