// SPDX-License-Identifier: BSD-3-Clause
// Reads the memory use of this process from /proc/self.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace qcts {

// False under AddressSanitizer: most of the address space is private memory there, freed blocks stay
// resident, and a failed allocation ends the process. Memory is neither limited nor judged then.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kMemoryCounts = false;
#else
inline constexpr bool kMemoryCounts = true;
#endif

// The limit of a worker's private memory, in addition to that after loading the provider, unless
// --memory-limit says otherwise.
inline constexpr uint64_t kDefaultMemoryLimitBytes = uint64_t{4} << 30;

// Returns the resident bytes (VmRSS), or nullopt if /proc does not report them.
std::optional<uint64_t> resident_bytes();
// Formats a size: "512 MiB".
std::string mib_text(uint64_t bytes);
// Resets the peak. Returns false if Linux does not allow it.
bool reset_peak_resident();
// Returns the bytes of private writable memory, touched or not (VmData), which RLIMIT_DATA limits.
std::optional<uint64_t> data_bytes();
std::optional<uint64_t> data_bytes_of(pid_t process);
// Returns the peak of the resident bytes since the last reset (VmHWM).
std::optional<uint64_t> peak_resident_bytes();

}  // namespace qcts
