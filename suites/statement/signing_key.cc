// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/signing_key.h"

#include <cerrno>
#include <cstring>
#include <span>
#include <stdexcept>

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reference/formats/io/sha256.h"
#include "suites/statement/base64.h"

namespace qcts {
namespace {

// SubjectPublicKeyInfo of an Ed25519 key, up to the key itself (RFC 8410, section 4).
constexpr std::string_view kDerStart("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::string_view kPemBegin = "-----BEGIN PUBLIC KEY-----\n", kPemEnd = "-----END PUBLIC KEY-----\n";

void start_sodium() {
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be used");
}

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& file)
      : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw std::runtime_error(std::strerror(errno));
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Returns the number of bytes read, at most `size`.
size_t read_key(const OpenFile& file, unsigned char* bytes, size_t size) {
  struct stat is {};
  if (::fstat(file.fd(), &is) != 0) throw std::runtime_error(std::strerror(errno));
  if (!S_ISREG(is.st_mode)) throw std::runtime_error("is not a regular file");
  if (is.st_uid != ::geteuid()) throw std::runtime_error("belongs to another user");
  if ((is.st_mode & 077) != 0)
    throw std::runtime_error("users other than its owner have access to it (chmod 600)");
  size_t have = 0;
  while (have < size) {
    const ssize_t count = ::read(file.fd(), bytes + have, size - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::runtime_error(std::strerror(errno));
    if (count == 0) break;
    have += static_cast<size_t>(count);
  }
  return have;
}

}  // namespace

PublicKey PublicKey::from_pem(const std::string& text) {
  const std::string der_text =
      text.starts_with(kPemBegin) && text.ends_with(kPemEnd)
          ? text.substr(kPemBegin.size(), text.size() - kPemBegin.size() - kPemEnd.size())
          : "";
  const std::string der =
      der_text.ends_with('\n') ? from_base64(der_text.substr(0, der_text.size() - 1)) : std::string();
  std::array<unsigned char, 32> bytes;
  if (!der.starts_with(kDerStart) || der.size() != kDerStart.size() + bytes.size())
    throw std::runtime_error("not the PEM of an Ed25519 public key");
  std::memcpy(bytes.data(), der.data() + kDerStart.size(), bytes.size());
  return PublicKey(bytes);
}

std::string PublicKey::pem() const {
  const std::string der =
      std::string(kDerStart) + std::string(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  return std::string(kPemBegin) + to_base64(der) + "\n" + std::string(kPemEnd);
}

std::string PublicKey::id() const {
  const std::string der =
      std::string(kDerStart) + std::string(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  return sha256_hex(std::as_bytes(std::span(der)));
}

bool PublicKey::has_signed(std::string_view message, std::string_view signature) const {
  start_sodium();
  return signature.size() == crypto_sign_BYTES &&
         ::crypto_sign_verify_detached(reinterpret_cast<const unsigned char*>(signature.data()),
                                       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                       bytes_.data()) == 0;
}

SigningKey::~SigningKey() { ::sodium_memzero(secret_.data(), secret_.size()); }

SigningKey::SigningKey(const std::filesystem::path& file) try {
  start_sodium();
  unsigned char seed[crypto_sign_SEEDBYTES + 1];  // one more, to notice a longer file
  const size_t have = read_key(OpenFile(file), seed, sizeof seed);
  ::crypto_sign_seed_keypair(public_.data(), secret_.data(), seed);
  ::sodium_memzero(seed, sizeof seed);
  if (have != crypto_sign_SEEDBYTES) throw std::runtime_error("does not have exactly 32 bytes");
} catch (const std::runtime_error& error) {
  throw std::runtime_error("key " + file.string() + ": " + error.what());
}

PublicKey SigningKey::public_key() const { return PublicKey(public_); }

std::string SigningKey::signature(std::string_view message) const {
  std::string signature(crypto_sign_BYTES, '\0');
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr,
                         reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                         secret_.data());
  return signature;
}

}  // namespace qcts
