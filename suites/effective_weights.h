// A failed linear, explained: the weights that the kernel really multiplies by, read back with one-hot rows,
// and the bug that explains most of the wrong ones.
#pragma once

#include <string>

#include "suites/question.h"

namespace qcts {

// "effective weights by one-hot probing: 96 of 1024 differ, first at row 0, column 64: want 0.25, got 0.5;
// hypothesis: scale of the next group (explains 96)". Never throws for what the kernel does.
std::string describe_effective_weights(const qcts_kernel& kernel, const KernelInput& input,
                                       const LinearTruth& truth, uint32_t threads);

}  // namespace qcts
