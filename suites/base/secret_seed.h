// SPDX-License-Identifier: BSD-3-Clause
// A seed that is kept secret by the person who runs the judge: records and reports give only its hash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace qcts {

struct SecretSeed {
  uint64_t seed = 0;
  std::string sha256;  // of the file's bytes
};

// Returns the seed that a file holds: the first eight bytes, little-endian, of the SHA-256 of "qcts seed" and
// the file's bytes. Throws UsageError if the file cannot be read or is empty.
SecretSeed read_secret_seed(const std::filesystem::path& file);

}  // namespace qcts
