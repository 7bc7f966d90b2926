// SPDX-License-Identifier: BSD-3-Clause
// Names and lengths of pickle's opcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace qcts::pickle {

// "opcode 0x8b (LONG4, an integer of more than 255 bytes)", with what to do where there is something.
std::string opcode_words(uint8_t opcode);

// Returns the bytes of an opcode of the allow-list with its operands; `rest` begins with it. nullopt for
// GLOBAL, STOP, other opcodes, and data that end inside.
std::optional<size_t> opcode_bytes(std::span<const std::byte> rest);

}  // namespace qcts::pickle
