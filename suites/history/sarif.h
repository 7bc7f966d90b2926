// SPDX-License-Identifier: BSD-3-Clause
// Writes what `qcts check` found in a file as SARIF 2.1.0 (OASIS, static analysis results), which code hosts
// show next to the file.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace qcts {

// `document` is what `qcts check --json` printed: its report, or a refusal, which has the byte offset. A rule
// is the class of a refusal, the kind of a finding, the rule of a value, or the kind of a verdict. Throws
// std::runtime_error if the document is something else.
nlohmann::ordered_json sarif_json(const nlohmann::ordered_json& document, const std::string& suite_version);

}  // namespace qcts
