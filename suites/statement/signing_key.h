// SPDX-License-Identifier: BSD-3-Clause
// Ed25519 keys (RFC 8032) that sign statements.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace qcts {

// A public key has two written forms: the DER of its SubjectPublicKeyInfo (RFC 8410), and that as PEM.
class PublicKey {
 public:
  explicit PublicKey(const std::array<unsigned char, 32>& bytes) : bytes_(bytes) {}
  // Throws std::runtime_error unless `text` is the PEM of one Ed25519 key.
  static PublicKey from_pem(const std::string& text);

  std::string pem() const;
  std::string id() const;  // SHA-256 of the DER, in hexadecimal
  bool has_signed(std::string_view message, std::string_view signature) const;
  bool operator==(const PublicKey&) const = default;

 private:
  std::array<unsigned char, 32> bytes_;
};

class SigningKey {
 public:
  // Reads the 32 bytes of a secret key. Throws std::runtime_error, which names the file, unless it has
  // exactly these, is a regular file of this user, and nobody else may read or write it.
  explicit SigningKey(const std::filesystem::path& file);
  ~SigningKey();
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;

  PublicKey public_key() const;
  std::string signature(std::string_view message) const;  // 64 bytes

 private:
  std::array<unsigned char, 64> secret_{};
  std::array<unsigned char, 32> public_{};
};

}  // namespace qcts
