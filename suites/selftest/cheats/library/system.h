// SPDX-License-Identifier: BSD-3-Clause
// Functions with which a cheat changes its own process and calls Linux.
#pragma once

#include <functional>
#include <string>

namespace qcts::cheats {

struct Region {
  char *begin = nullptr, *end = nullptr;
};

// Returns the first mapping of this process whose name contains `name`, or an empty region if there is none.
Region region_named(const char* name);

// Calls visit(begin, end) for the readable memory of this process except its stacks: each mapping without a
// file, and the first 64 MiB of the judge's windows, which it opens to read.
void visit_memory(const std::function<void(const char* begin, const char* end)>& visit);

// Makes Linux pass each write() of this process to `change`, and then write the changed text. Returns false,
// with errno set, if Linux refuses.
bool trap_write(void (*change)(std::string& text));

// Makes Linux refuse one system call (swapon) that this process never makes. Returns false, with errno set,
// on failure.
bool refuse_swap();

}  // namespace qcts::cheats
