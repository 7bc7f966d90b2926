// SPDX-License-Identifier: BSD-3-Clause
// Judges some of a statement's cases again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suites/statement/predicate.h"

namespace qcts {

// Returns the full ids of at least kMinSample cases, and at least that share, drawn by libsodium's generator.
// Fewer if the statement has fewer. Timed cases, and those drawn from a secret seed, are left out.
std::vector<std::string> drawn_sample(const Predicate& predicate, double percent);

// Judges these cases of the complete plan with the run's seed, threads and limits. Returns their record.
// Throws RunError as `qcts run` does.
RunRecord judged_anew(const RunHead& head, const std::filesystem::path& provider,
                      const std::vector<std::string>& ids, unsigned jobs);

}  // namespace qcts
