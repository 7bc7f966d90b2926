// SPDX-License-Identifier: BSD-3-Clause
// A case as one line of JSON that tells a worker what to judge. Goldens and malformed files appear by id.
#pragma once

#include <nlohmann/json.hpp>

#include "fixtures/golden.h"
#include "kernels/registry.h"
#include "suites/cases/case.h"

namespace qcts {

// Returns the key of `c`. `variant` is the kernel's variant, or empty for cases that judge files.
nlohmann::ordered_json case_key(const Case& c, const std::string& variant);

// Returns true if the key asks about a golden or a malformed file. Throws std::runtime_error without a
// question.
bool needs_fixtures(const nlohmann::ordered_json& key);

// Returns the case of `key`, bound to the key's variant in `registry`, which holds one provider.
// Throws std::runtime_error, which names the missing entry of `fixtures` or `registry`.
Case case_of_key(const nlohmann::ordered_json& key, const Fixtures& fixtures, const Registry& registry);

}  // namespace qcts
