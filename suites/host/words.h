// SPDX-License-Identifier: BSD-3-Clause
// Words of shared memory by which one process wakes another.
#pragma once

#include <chrono>
#include <cstdint>

namespace qcts {

// Stores the value and wakes the processes that await it.
void post(uint32_t& word, uint32_t value);
// Sleeps until the word has the value, which may be in memory that only the other process can write.
// Returns false if it still has another after `limit`. Stays awake for `spin` at first.
bool await(const uint32_t& word, uint32_t value, std::chrono::milliseconds limit,
           std::chrono::microseconds spin = {});

}  // namespace qcts
