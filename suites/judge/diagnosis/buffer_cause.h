// SPDX-License-Identifier: BSD-3-Clause
// Finds what it is about the buffers or the threads of a call that makes its answer wrong.
#pragma once

#include <functional>
#include <string>

#include "suites/providers/kernel_run.h"

namespace qcts {

// Returns "right in aligned and dense buffers with 1 thread, wrong only with gaps between rows" for a call
// with `options` whose answer was wrong. Calls the kernel with none of the options and then with one at a
// time. Returns "" if the options are the plain ones, if the answer is wrong without them too, or if it is
// right with each one on its own. Never throws because of the kernel.
std::string cause_in_buffers(const qcts_kernel& kernel, const KernelInput& input, const RunOptions& options,
                             const std::function<bool(const KernelAnswer&)>& is_right);

}  // namespace qcts
