// SPDX-License-Identifier: BSD-3-Clause
// Memory of this process, from /proc/self.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace qcts {

// Resident bytes now (VmRSS); nullopt where /proc does not say.
std::optional<uint64_t> resident_bytes();
// "512 MiB"
std::string mib_text(uint64_t bytes);
// Forgets the peak so far. False where the kernel does not allow it.
bool reset_peak_resident();
// Private writable memory, touched or not (VmData): what RLIMIT_DATA counts.
std::optional<uint64_t> data_bytes();
// The highest since the last reset (VmHWM).
std::optional<uint64_t> peak_resident_bytes();

}  // namespace qcts
