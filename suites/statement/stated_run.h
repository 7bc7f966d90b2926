// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>

namespace qcts {

// Returns what the page of a run says about the statement.json in its folder, as "statement: int8 kernels 1.0
// of Acme, signed by 5f..", or kNoStatement. Throws Failure, which names the field, for a statement that
// `qcts verify` refuses or that is about another run.
std::string statement_line(const std::filesystem::path& folder);

}  // namespace qcts
