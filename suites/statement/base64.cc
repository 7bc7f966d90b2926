// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/base64.h"

#include <stdexcept>

#include <sodium.h>

namespace qcts {

std::string to_base64(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  ::sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                      bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // a NUL
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  size_t size = 0;
  const char* end = nullptr;
  const int failed =
      ::sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                          text.size(), nullptr, &size, &end, sodium_base64_VARIANT_ORIGINAL);
  if (failed != 0 || end != text.data() + text.size()) throw std::runtime_error("not base64");
  bytes.resize(size);
  if (to_base64(bytes) != text) throw std::runtime_error("not base64 in its shortest form");
  return bytes;
}

}  // namespace qcts
