// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Copies every plane except `name` unchanged, for a problem of pack or unpack.
void copy_planes_but(const qcts_problem& problem, const char* name);

}  // namespace qcts
