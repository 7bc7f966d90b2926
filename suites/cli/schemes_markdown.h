// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace qcts::cli {

// Returns a Markdown table of scheme families by operations.
// Each cell lists the variants that serve at least one scheme of the family: ref, avx2, avx512, amx, cuda.
// "-" means that the family has no such operation.
std::string schemes_markdown();

}  // namespace qcts::cli
