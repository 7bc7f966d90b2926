// SPDX-License-Identifier: BSD-3-Clause
// Keeps the reason why the calling thread's last launch failed, for qcts_kernel.failure.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Keeps the text (printf format) for last_failure() and returns QCTS_FAILED.
__attribute__((format(printf, 1, 2))) qcts_status launch_failed(const char* format, ...);
// Writes the text to `why`: at most why_size bytes, NUL included.
void last_failure(char* why, size_t why_size);

}  // namespace qcts
