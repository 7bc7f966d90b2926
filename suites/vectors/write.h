// SPDX-License-Identifier: BSD-3-Clause
// The two forms in which vectors are exported: JSON by suites/vectors/vectors.schema.json, and tab-separated
// text with one vector per line. Bytes are lower-case hexadecimal, in the order in which they are in memory,
// so numbers are little-endian.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "suites/vectors/agreement.h"
#include "suites/vectors/vectors.h"

namespace qcts {

std::string hex_of(std::span<const std::byte> bytes);

// The vectors of one scheme.
std::string vectors_json(const std::vector<VectorGroup>& groups, const AgreementTable& agreement);
// The line of names, then one line per vector: id, scheme, dtype, n, k, x, codes, scales, y, flags. Where a
// scheme has several planes in addition to the codes, `scales` holds them in the order of the JSON, separated
// by commas. Flags are separated by commas too.
std::string vectors_text(const std::vector<VectorGroup>& groups);

}  // namespace qcts
