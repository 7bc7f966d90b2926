// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "reference/schemes/scheme.h"

namespace qcts {

std::string suite_version();
// Returns the processor and its features, the operating system, the compiler and the build options.
nlohmann::ordered_json environment_json();
// Returns the name, family, summary, source, group and layouts of every listed scheme, and of `others`.
nlohmann::ordered_json schemes_json(std::span<const Scheme* const> others = {});
// Returns the list of choices with the schemes of each choice (reference/schemes/choices/choices.h).
// Also returns the documented claims that are not true.
nlohmann::ordered_json choices_json();
// Returns the KeptLayouts of reference/schemes/choices/choices.h. choices_json() includes them.
nlohmann::ordered_json kept_layouts_json();
// Returns fixtures/readers.json, which says which libraries read which files, or null if it is missing.
nlohmann::ordered_json readers_json();
std::string utc_now();  // "2026-01-31T12:34:56Z"

}  // namespace qcts
