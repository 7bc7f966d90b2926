// SPDX-License-Identifier: BSD-3-Clause
// Names and lengths of pickle's opcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace qcts::pickle {

// Describes an opcode: "opcode 0x8b (LONG4, an integer of more than 255 bytes)". Adds advice if there is any.
std::string opcode_words(uint8_t opcode);

// Returns the length in bytes of an opcode of the allow-list with its operands.
// `rest` begins with the opcode.
// Returns nullopt for GLOBAL, STOP, other opcodes, and data that end inside the opcode.
std::optional<size_t> opcode_bytes(std::span<const std::byte> rest);

}  // namespace qcts::pickle
