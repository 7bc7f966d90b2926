// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/sha256.h"

#include <sodium.h>

#include <array>

namespace qcts {

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text;
  for (unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace qcts
