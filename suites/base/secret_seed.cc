// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/secret_seed.h"

#include <fstream>
#include <iterator>
#include <span>
#include <system_error>

#include "reference/formats/io/sha256.h"
#include "suites/base/run_error.h"

namespace qcts {
namespace {

std::string sha256_of(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

uint64_t first_eight_bytes(const std::string& hex) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::stoull(hex.substr(2 * i, 2), nullptr, 16) << 8 * i;
  return value;
}

}  // namespace

SecretSeed read_secret_seed(const std::filesystem::path& file) {
  std::error_code none;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, none))
    throw UsageError("--seed-file " + file.string() + ": cannot be read");
  const std::string secret(std::istreambuf_iterator<char>(in), {});
  if (secret.empty()) throw UsageError("--seed-file " + file.string() + ": is empty");
  return {first_eight_bytes(sha256_of("qcts seed" + secret)), sha256_of(secret)};
}

}  // namespace qcts
