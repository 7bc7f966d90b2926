// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device_check/backend.h"

namespace qcts::device_check {

// The program's main(). It compares `device` with the executor.
int program(int argc, char** argv, const Backend& device);

inline constexpr int kEqual = 0, kDifferent = 1, kUsage = 2, kNoDevice = 3;

}  // namespace qcts::device_check
