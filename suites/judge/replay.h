// SPDX-License-Identifier: BSD-3-Clause
// A failing input that was shrunk and saved to a file, so that it can be run on any kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "suites/judge/expected/test_vector.h"
#include "suites/judge/judge.h"

namespace qcts {

// The contents of a replay file: an input of one op with all its bytes.
// The expected answer is not stored, because the reference computes it again.
struct Replay {
  KernelInput input;
  int exact_bits = 0;    // see TestVector
  CaseId case_id;        // the case in which the input failed
  std::string provider;  // the kernel that failed: "vendor_avx2"
};

// Stores bytes in base64, with runs of equal bytes shortened. replay_from_json throws for an invalid field.
nlohmann::ordered_json to_json(const Replay& replay);
Replay replay_from_json(const nlohmann::ordered_json& json);

// Formats a replay as a text file with one field per line.
// If the file is invalid, read_replay throws std::runtime_error, which names the file and field.
std::string replay_text(const Replay& replay);
Replay read_replay(const std::filesystem::path& path);

// Makes the replay's test vector with the reference's answer.
// Throws std::invalid_argument for an op that cannot be replayed.
TestVector test_vector_of(const Replay& replay);

// Judges a given test vector as the numerics kind does: fills in status, reason, mismatch and measures.
void judge_test_vector(const qcts_kernel& kernel, const TestVector& test_vector, const JudgeContext& context,
                       Verdict& verdict);

// Judges a replay like a numerics case. The status is internal if the reference refuses the replay.
Verdict judge_replay(const Replay& replay, const Implementation& implementation, const JudgeContext& context);

struct ShrinkStats {
  uint64_t tried = 0, kept = 0;
};
// Returns the smallest input found that still fails.
// Uses delta debugging (Zeller and Hildebrandt 2002) over m, n and k.
// Then zeroes ever smaller runs of bytes in x, bias and planes.
// Calls `fails`, which must be true for `start`, at most `budget` times.
Replay shrink(const Replay& start, const std::function<bool(const Replay&)>& fails, uint64_t budget,
              ShrinkStats* stats = nullptr);

struct ShrunkReplay {
  Replay replay;
  Verdict verdict;
};
struct Shrinking {
  ShrunkReplay same;  // the smallest replay with the status and the hypothesis of the start
  // A still smaller replay that has the same status but not that hypothesis.
  std::optional<ShrunkReplay> smaller;
  uint64_t tried = 0;
};
// Shrinks as long as the answer keeps the status and the hypothesis of `first`, the verdict on `start`.
// Then continues from there with only the status.
// An input that can no longer be judged counts as not failing.
// Calls `judge` at most `budget` times.
Shrinking shrink_both(const Replay& start, const Verdict& first,
                      const std::function<Verdict(const Replay&)>& judge, uint64_t budget);

}  // namespace qcts
