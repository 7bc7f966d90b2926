// SPDX-License-Identifier: BSD-3-Clause
// A case as one line of JSON, which tells a worker what to judge. Goldens and malformed files are named by
// id.
#pragma once

#include <nlohmann/json.hpp>

#include "fixtures/golden.h"
#include "kernels/registry.h"
#include "suites/cases/case.h"

namespace qcts {

// Returns the key of `c`. `variant`: the kernel's; empty for cases that judge files.
nlohmann::ordered_json case_key(const Case& c, const std::string& variant);

// Does the key refer to a golden or a malformed file?
bool needs_fixtures(const nlohmann::ordered_json& key);

// Returns the case of `key`, bound to the key's variant in `registry`, which holds one provider. Throws
// std::runtime_error naming what `fixtures` or `registry` lacks.
Case case_of_key(const nlohmann::ordered_json& key, const Fixtures& fixtures, const Registry& registry);

}  // namespace qcts
