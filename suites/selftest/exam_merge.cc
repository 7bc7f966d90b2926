// SPDX-License-Identifier: BSD-3-Clause
// Questions for the merge of a run's shards.
#include "suites/run/run.h"
#include "suites/selftest/exam_parts.h"

namespace qcts::selftest {
namespace {

Verdict merge_verdict(const std::string& input, Status status = Status::pass) {
  Verdict verdict;
  verdict.case_id = parse_case_id("numerics.linear/int8_row/" + input).value();
  verdict.provider = "builtin";
  verdict.variant = "scalar";
  verdict.status = status;
  verdict.reason = status == Status::pass ? "" : "a reason";
  return verdict;
}

// Returns shard `shard` of two, of a run with the cases a, b and c.
MergePart part_with(uint32_t shard, std::initializer_list<Verdict> verdicts) {
  MergePart part{"out" + std::to_string(shard), {}};
  RunHead& head = part.record.head;
  head.suite_version = "1";
  head.plan = "default";
  head.plan_sha256 = "of default";
  head.shard = shard;
  head.shards = 2;
  head.cases = verdicts.size();
  head.all_cases = 3;
  head.cases_sha256 =
      ids_sha256({merge_verdict("a").full_id(), merge_verdict("b").full_id(), merge_verdict("c").full_id()});
  part.record.verdicts = verdicts;
  return part;
}

MergePart odd_ones() { return part_with(1, {merge_verdict("a"), merge_verdict("c")}); }
MergePart even_ones() { return part_with(2, {merge_verdict("b")}); }

bool joins(const Parts& parts, const std::vector<MergePart>& given) {
  try {
    parts.join(given);
    return true;
  } catch (const RunError&) {
    return false;
  }
}

bool whole_run(const Parts& parts) {
  return joins(parts, {odd_ones(), even_ones()}) && joins(parts, {even_ones(), odd_ones()});
}

bool missing_shard(const Parts& parts) {
  return !joins(parts, {odd_ones()}) && !joins(parts, {even_ones()}) && !joins(parts, {});
}

bool same_shard_twice(const Parts& parts) { return !joins(parts, {odd_ones(), odd_ones(), even_ones()}); }

bool case_twice(const Parts& parts) {
  return !joins(parts, {odd_ones(), part_with(2, {merge_verdict("b"), merge_verdict("c")})});
}

bool two_verdicts(const Parts& parts) {
  return !joins(parts, {odd_ones(), part_with(2, {merge_verdict("b"), merge_verdict("c", Status::fail)})});
}

bool unknown_case(const Parts& parts) {
  return !joins(parts, {odd_ones(), part_with(2, {merge_verdict("z")})});
}

bool unfinished(const Parts& parts) {
  MergePart part = odd_ones();
  part.record.head.cases = 3;
  return !joins(parts, {part, even_ones()});
}

bool other_plan(const Parts& parts) {
  MergePart part = even_ones();
  part.record.head.plan = "quick";
  part.record.head.plan_sha256 = "of quick";
  return !joins(parts, {odd_ones(), part});
}

bool other_provider(const Parts& parts) {
  MergePart part = even_ones();
  part.record.head.providers = nlohmann::ordered_json::array({{{"name", "acme"}, {"sha256", "of another"}}});
  return !joins(parts, {odd_ones(), part});
}

constexpr Question kMergeQuestions[] = {
    {"merge.whole_run", "the shards of one run are not joined", whole_run},
    {"merge.missing_shard", "a shard may be missing", missing_shard},
    {"merge.same_shard_twice", "a shard may come twice", same_shard_twice},
    {"merge.case_twice", "a case may be judged twice", case_twice},
    {"merge.two_verdicts", "one of two verdicts is dropped", two_verdicts},
    {"merge.unknown_case", "cases of a different run are joined", unknown_case},
    {"merge.unfinished", "an unfinished shard is joined", unfinished},
    {"merge.other_plan", "shards of two plans are joined", other_plan},
    {"merge.other_provider", "shards of two providers are joined", other_provider},
};

}  // namespace

std::span<const Question> merge_questions() { return kMergeQuestions; }

}  // namespace qcts::selftest
