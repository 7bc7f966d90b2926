// SPDX-License-Identifier: BSD-3-Clause
// Overwrites the code of a function in this process, so that its callers reach another one.
#pragma once

#include <cstddef>

#include <sys/types.h>
#include <time.h>

namespace qcts::cheats {

using WriteFunction = ssize_t (*)(int, const void*, size_t);
using ClockFunction = int (*)(clockid_t, timespec*);

// Return false if the code cannot be changed, or on a processor whose jumps are unknown here.
bool redirect_write(WriteFunction to);
bool redirect_clock(ClockFunction to);

}  // namespace qcts::cheats
