// SPDX-License-Identifier: BSD-3-Clause
// Launches on the fake device (kernels/fakecuda): they wait in its streams.
#pragma once

#include <functional>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/emulated/simt.h"

namespace qcts::simt {

// True if QCTS_CUDA_DRIVER names the fake driver.
bool has_fake_device();
// Calls call(), whose launches do not run but go to the stream, with these settings. Returns its status.
qcts_status enqueue_launches(void* stream, Settings settings, const std::function<qcts_status()>& call);

}  // namespace qcts::simt
