// SPDX-License-Identifier: BSD-3-Clause
// The stacks of the executor's threads, and the switch between them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qcts::simt {

inline constexpr size_t kStackBytes = 64 << 10;
inline constexpr uint32_t kLauncher = ~uint32_t{0};  // the stack of the caller of launch()

// Makes the stacks. Returns false if there is no memory for this many.
bool make_stacks(uint32_t threads);
// Prepares the thread to start in `begin` at the first switch to it. `begin` must call enter_fiber() first
// and must not return.
void prepare_fiber(uint32_t thread, void (*begin)());
void enter_fiber();
// Switches from one stack to another. The caller, `from`, goes on when somebody switches to it.
void switch_fibers(uint32_t from, uint32_t to);
// Returns false once the thread has used more than its stack.
bool stack_is_whole(uint32_t thread);

}  // namespace qcts::simt
