// SPDX-License-Identifier: BSD-3-Clause
// Judges the round_trip of a TorchScript file for `qcts check`, by a plug-in in a separate worker process.
#pragma once

#include <optional>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"
#include "suites/judge/context/judge_settings.h"

namespace qcts::cli {

// Passes the file to the first plug-in that loads and saves TorchScript, under the limits of `qcts run`.
// Returns nullopt if there is no such plug-in. qcts does not run the file's code, because no inputs are
// known.
std::optional<Verdict> judge_program_file(const Checkpoint& checkpoint, const JudgeSettings& settings);

}  // namespace qcts::cli
