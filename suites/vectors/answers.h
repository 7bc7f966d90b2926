// SPDX-License-Identifier: BSD-3-Clause
// Answers that others wrote in the format of the vectors, and their judgement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fixtures/golden.h"
#include "suites/vectors/vectors.h"

namespace qcts {

// One vector as somebody else fills it in. An absent part was not answered.
struct VectorAnswer {
  std::string id;
  std::optional<std::vector<std::byte>> x;  // has to be the vector's own
  std::optional<std::vector<std::byte>> codes, y;
  // By name from JSON. From text, in the order of the columns: then the names are "".
  std::optional<std::vector<std::pair<std::string, std::vector<std::byte>>>> scales;
};

// Reads JSON or tab-separated text; the first character decides. Throws std::runtime_error, which names the
// file, the line or the id, and the field: an unknown field, a repeated field or id, a string that is not
// hexadecimal.
std::vector<VectorAnswer> read_answers(const std::filesystem::path& file);

enum class AnswerPart : uint8_t { codes, scales, outputs };
inline constexpr size_t kAnswerParts = 3;
std::string_view part_name(AnswerPart part);

struct PartScore {
  size_t answered = 0, right = 0;
};

struct WrongAnswer {
  std::string id;
  AnswerPart part = AnswerPart::codes;
  std::string what;  // "row 0, k 5: want 0x3c, got 0x3d"
  std::string hunts;
  std::vector<VectorFlag> flags;  // of the vector
  // Options of the ledger (reference/schemes/choices/choices.h) that give this part; empty: none does.
  std::vector<std::string> choices;
};

// The judgement of the answers to the vectors of one scheme and dtype.
struct GroupJudgement {
  const Scheme* scheme = nullptr;
  DType dtype = DType::bfloat16;
  size_t vectors = 0;
  PartScore parts[kAnswerParts];
  std::vector<WrongAnswer> wrong;
  // Options (judge/diagnosis/recipe_options.h) that give all codes and scales, where these are wrong.
  std::vector<std::string> computes;
  std::vector<std::string> missing;  // ids without an answer to a part that others of the group have

  // Returns the flags that every vector with a wrong answer has. Empty if fewer than two are wrong.
  std::vector<VectorFlag> flags_of_all_wrong() const;
};

// Judges answers by id. Each group that an answer belongs to has to be answered in full.
// Throws std::runtime_error for an id that no vector has, and for an x that is not the vector's.
std::vector<GroupJudgement> judge_answers(const std::vector<VectorAnswer>& answers, const Fixtures& fixtures);

}  // namespace qcts
