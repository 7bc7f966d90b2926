// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace qcts {

std::string suite_version();
// Processor and its features, operating system, compiler and how this was built.
nlohmann::ordered_json environment_json();
// name, family, summary, source, group, layouts of every scheme.
nlohmann::ordered_json schemes_json();
// The choices ledger with the schemes that answer so, and documented claims that do not hold
// (reference/schemes/choices.h).
nlohmann::ordered_json choices_json();
// reference/schemes/choices.h, KeptLayout; within choices_json() too.
nlohmann::ordered_json kept_layouts_json();
// fixtures/readers.json of the repository: who reads whose files; null where it is not there.
nlohmann::ordered_json readers_json();
std::string utc_now();  // "2026-01-31T12:34:56Z"

}  // namespace qcts
