// SPDX-License-Identifier: BSD-3-Clause
// Functions by which a cheat works on its own process and asks Linux.
#pragma once

#include <functional>
#include <string>

namespace qcts::cheats {

struct Region {
  char *begin = nullptr, *end = nullptr;
};

// Returns the first mapping of this process whose name contains `name`; an empty region without one.
Region region_named(const char* name);

// Calls visit(begin, end) for the readable memory of this process except its stacks: each mapping without a
// file, and the first 64 MiB of the judge's windows, which it opens to read.
void visit_memory(const std::function<void(const char* begin, const char* end)>& visit);

// Makes the kernel send each write() of this process to `change`, and then write the changed text. Returns
// false with errno if it refuses.
bool trap_write(void (*change)(std::string& text));

// Has the kernel refuse one call that this process never makes. Returns false with errno if it cannot.
bool refuse_swap();

}  // namespace qcts::cheats
