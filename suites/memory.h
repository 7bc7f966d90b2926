// Peak resident memory of this process, from /proc/self.
#pragma once

#include <cstdint>
#include <optional>

namespace qcts {

// Resident bytes now (VmRSS); nullopt where /proc does not say.
std::optional<uint64_t> resident_bytes();
// Forgets the peak so far. False where the kernel does not allow it.
bool reset_peak_resident();
// The highest since the last reset (VmHWM).
std::optional<uint64_t> peak_resident_bytes();

}  // namespace qcts
