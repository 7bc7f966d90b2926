// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/budget.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "suites/record/run_record.h"

namespace qcts {
namespace {

// "noise" of "noise_m3_n37_k216_bf16": the name up to the first part with a digit. A golden's name is whole,
// because each is a separate question.
std::string question_family(const std::string& input) {
  size_t at = 0;
  while ((at = input.find('_', at)) != input.npos) {
    const char letter = at + 1 < input.size() ? input[at + 1] : ' ',
               digit = at + 2 < input.size() ? input[at + 2] : ' ';
    if (std::string_view("mnk").find(letter) != std::string_view::npos && digit >= '0' && digit <= '9') break;
    ++at;
  }
  return input.substr(0, at);
}

uint64_t mixed(const std::string& id) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash ^ hash >> 29;
}

}  // namespace

void sort_by_value(std::vector<Task>& tasks) {
  std::ranges::sort(tasks, {}, [](const Task& task) { return mixed(task.name.full_id); });
  std::map<std::string, size_t> asked;
  std::vector<std::pair<size_t, Task>> ranked;
  for (Task& task : tasks) {
    const CaseId& id = task.name.id;
    const std::string question = std::to_string(task.slot) + " " + task.name.variant + " " +
                                 std::string(kind_name(id.kind)) + " " + std::string(op_name(id.op)) + " " +
                                 id.scheme + " " + question_family(id.input);
    ranked.emplace_back(asked[question]++, std::move(task));
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& one) { return one.first; });
  tasks.clear();
  for (auto& [rank, task] : ranked) tasks.push_back(std::move(task));
}

bool Budget::is_spent() const {
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - began_;
  return seconds_ && past.count() > *seconds_;
}

std::string Budget::text() const {
  return "--budget " + std::to_string(std::llround(seconds_.value_or(0))) + "s";
}

void keep_what_was_judged(const std::filesystem::path& out, const std::string& words) {
  replace_head(out, [&](RunRecord& record) {
    std::vector<std::string> ids;
    for (const Verdict& verdict : record.verdicts) ids.push_back(verdict.full_id());
    record.head.cases = record.head.all_cases = ids.size();
    record.head.cases_sha256 = ids_sha256(ids);
    record.head.selection.push_back(words);
  });
}

void replace_head(const std::filesystem::path& out, const std::function<void(RunRecord&)>& change) {
  const std::filesystem::path file = out / "run.jsonl", whole = out / "run.jsonl.part";
  RunRecord record = read_run_record(file);
  change(record);
  RunRecordWriter writer;
  writer.create(whole, record.head);
  for (const Verdict& verdict : record.verdicts) writer.add(verdict);
  writer.close();
  std::filesystem::rename(whole, file);
}

}  // namespace qcts
