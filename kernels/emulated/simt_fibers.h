// SPDX-License-Identifier: BSD-3-Clause
// Stacks of the executor's threads, and the switch between them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qcts::simt {

inline constexpr size_t kStackBytes = 64 << 10;
inline constexpr uint32_t kLauncher = ~uint32_t{0};  // the stack of who calls launch()

// Returns false if there is no memory for so many.
bool make_stacks(uint32_t threads);
// Lets the thread begin in `begin`, which must call enter_fiber() first and not return, at the first switch
// to it.
void prepare_fiber(uint32_t thread, void (*begin)());
void enter_fiber();
// The caller, `from`, goes on when somebody switches to it.
void switch_fibers(uint32_t from, uint32_t to);
// False once the thread has used more than its stack.
bool stack_is_whole(uint32_t thread);

}  // namespace qcts::simt
