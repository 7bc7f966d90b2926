// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/opcodes.h"

#include <string_view>

#include "reference/formats/io/byte_io.h"

namespace qcts::pickle {
namespace {

struct Name {
  uint8_t opcode;
  std::string_view name;
};
// Opcodes outside the allow-list: CPython's pickletools.
constexpr Name kRefused[] = {
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'P', "PERSID"},
    {'S', "STRING"},
    {'V', "UNICODE"},
    {'T', "BINSTRING"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {'g', "GET"},
    {'p', "PUT"},
    {'i', "INST"},
    {'o', "OBJ"},
    {'l', "LIST"},
    {'d', "DICT"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8b, "LONG4, an integer of more than 255 bytes: save it as a string"},
    {0x8c, "SHORT_BINUNICODE"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x94, "MEMOIZE"},
    {0x95, "FRAME"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

}  // namespace

std::string opcode_words(uint8_t opcode) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string words = std::string("opcode 0x") + kDigits[opcode >> 4] + kDigits[opcode & 15];
  for (const Name& name : kRefused)
    if (name.opcode == opcode) words.append(" (").append(name.name).append(")");
  return words;
}

std::optional<size_t> opcode_bytes(std::span<const std::byte> rest) {
  constexpr std::string_view kBare = "(]})NRQbaesut\x81\x85\x86\x87\x88\x89\x8f", kOneByte = "Kqh\x80",
                             kFour = "Jrj";
  constexpr std::string_view kShortText = "U\x8a";
  if (rest.empty()) return std::nullopt;
  const char opcode = static_cast<char>(rest[0]);
  uint64_t bytes = 0;
  if (kBare.find(opcode) != std::string_view::npos) bytes = 1;
  if (kOneByte.find(opcode) != std::string_view::npos) bytes = 2;
  if (kFour.find(opcode) != std::string_view::npos) bytes = 5;
  if (opcode == 'M') bytes = 3;
  if (opcode == 'G') bytes = 9;
  if (kShortText.find(opcode) != std::string_view::npos && rest.size() >= 2)
    bytes = 2 + load_le<uint8_t>(rest, 1);
  if (opcode == 'X' && rest.size() >= 5) bytes = uint64_t{5} + load_le<uint32_t>(rest, 1);
  if (bytes == 0 || bytes > rest.size()) return std::nullopt;
  return static_cast<size_t>(bytes);
}

}  // namespace qcts::pickle
