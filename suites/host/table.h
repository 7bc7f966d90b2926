// SPDX-License-Identifier: BSD-3-Clause
// A provider's table as text, which a host sends when it has loaded the library.
#pragma once

#include <nlohmann/json.hpp>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Writes all that the table says about itself and its kernels. Functions become `true` or `false`: whether
// they are there. Structs keep the size that the provider gave them; fields beyond it are absent.
// Reads only what is within these sizes. Throws std::runtime_error for a table too short to have a name.
nlohmann::ordered_json table_json(const qcts_provider& given);

}  // namespace qcts
