#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace qcts {

// CRC-32 of zip archives (reflected polynomial 0xEDB88320, initial value and final XOR all ones): zlib's
// crc32(0, ...).
uint32_t crc32_of(std::span<const std::byte> bytes);

// The same of several, on all processors where there is enough to do.
std::vector<uint32_t> crc32_of_each(std::span<const std::span<const std::byte>> records);

}  // namespace qcts
