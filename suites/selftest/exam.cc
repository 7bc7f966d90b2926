// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/exam.h"

#include <stdexcept>

#include "suites/selftest/exam_parts.h"

namespace qcts::selftest {

std::vector<ExamResult> examine(MutantKind kind, std::string_view mutant) {
  if (!mutant.empty() && (!find_mutant(mutant) || find_mutant(mutant)->kind != kind))
    throw std::invalid_argument(std::string(mutant) + " is not a mutant of kind " +
                                std::string(mutant_kind_name(kind)));
  std::span<const Question> questions;
  if (kind == MutantKind::comparator) questions = comparator_questions();
  if (kind == MutantKind::runner) questions = runner_questions();
  if (kind == MutantKind::merge) questions = merge_questions();
  if (kind == MutantKind::bench) questions = bench_questions();
  std::vector<ExamResult> results;
  if (questions.empty()) return results;
  const Parts parts = mutant.empty() ? Parts{} : mutated_parts(mutant);
  for (const Question& question : questions)
    results.push_back({std::string(question.name), std::string(question.what), question.holds(parts)});
  return results;
}

}  // namespace qcts::selftest
