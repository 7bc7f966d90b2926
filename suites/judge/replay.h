// SPDX-License-Identifier: BSD-3-Clause
// A failing question made small and kept: a file that anyone can put to a kernel again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "suites/judge/expected/question.h"
#include "suites/judge/judge.h"

namespace qcts {

// What a replay file holds: an input of one op with all its bytes. What is wanted of it is not kept: the
// reference says it anew.
struct Replay {
  KernelInput input;
  bool exact_sums = false;  // linear: y is wanted bit for bit
  CaseId case_id;           // that it came from
  std::string provider;     // "vendor_avx2" that failed it
};

// Bytes in base64 with runs of equal bytes shortened. replay_from_json throws what is wrong with a field.
nlohmann::ordered_json to_json(const Replay& replay);
Replay replay_from_json(const nlohmann::ordered_json& json);

// The same as the text of a file, one line a field. read_replay throws std::runtime_error naming file and
// field for what is no replay.
std::string replay_text(const Replay& replay);
Replay read_replay(const std::filesystem::path& path);

// The question of a replay, with what the reference says of it. Throws std::invalid_argument for an op that
// cannot be replayed.
Question question_of(const Replay& replay);

// The numerics kind with a question of the caller's: fills status, reason, mismatch and measures.
void judge_question(const qcts_kernel& kernel, const Question& question, const JudgeContext& context,
                    Verdict& verdict);

// Judged like a numerics case; what the reference refuses is internal.
Verdict judge_replay(const Replay& replay, const Implementation& implementation, const JudgeContext& context);

struct ShrinkStats {
  uint64_t tried = 0, kept = 0;
};
// The smallest input found that still fails: delta debugging (Zeller and Hildebrandt 2002) over m, n and k,
// then over the bytes of x, bias and planes, which become zero in ever smaller runs. `fails` is asked at most
// `budget` times; it is true of `start`.
Replay shrink(const Replay& start, const std::function<bool(const Replay&)>& fails, uint64_t budget,
              ShrinkStats* stats = nullptr);

}  // namespace qcts
