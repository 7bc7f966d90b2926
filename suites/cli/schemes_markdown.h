// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace qcts::cli {

// A Markdown table of scheme families by operations. Each cell lists who serves at least one scheme of the
// family: ref, avx2, avx512, amx, cuda. "-" stands where the family has no such operation.
std::string schemes_markdown();

}  // namespace qcts::cli
