// SPDX-License-Identifier: BSD-3-Clause
// Base64 with padding (RFC 4648, section 4), without line breaks.
#pragma once

#include <string>
#include <string_view>

namespace qcts {

std::string to_base64(std::string_view bytes);
// Throws std::runtime_error unless `text` is what to_base64() writes for some bytes.
std::string from_base64(std::string_view text);

}  // namespace qcts
