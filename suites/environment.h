#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace qcts {

std::string suite_version();
// Processor and its features, operating system, compiler and how this was built.
nlohmann::ordered_json environment_json();
// name, family, summary, source, group, layouts of every scheme.
nlohmann::ordered_json schemes_json();
std::string utc_now();  // "2026-01-31T12:34:56Z"

}  // namespace qcts
