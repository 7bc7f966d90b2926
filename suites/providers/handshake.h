// SPDX-License-Identifier: BSD-3-Clause
// The first line that a host writes.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace qcts {

struct Handshake {
  std::string line;
  nlohmann::ordered_json table;  // the provider's, or {"error": ...}
};

}  // namespace qcts
