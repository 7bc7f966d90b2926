// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <stdexcept>

#include "suites/base/did_you_mean.h"
#include "suites/judge/diagnosis/recipe_options.h"
#include "suites/vectors/answers.h"
#include "suites/vectors/write.h"

namespace qcts {
namespace {

// The answers to the vectors of one group.
class GroupJudge {
 public:
  GroupJudge(const VectorGroup& group, const std::map<std::string, const VectorAnswer*>& answers)
      : group_(group), answers_(answers) {
    judged_.scheme = group.scheme;
    judged_.dtype = group.dtype;
    judged_.vectors = group.vectors.size();
  }

  GroupJudgement judge() && {
    for (const ExportedVector& vector : group_.vectors)
      if (const VectorAnswer* answer = answer_to(vector)) judge_one(vector, *answer);
    for (const ExportedVector& vector : group_.vectors) note_missing(vector);
    if (!judged_.wrong.empty() && judged_.missing.empty() && score(AnswerPart::codes).answered > 0 &&
        score(AnswerPart::scales).answered > 0)
      name_options();
    return std::move(judged_);
  }

 private:
  const VectorAnswer* answer_to(const ExportedVector& vector) const {
    const auto found = answers_.find(vector.id);
    return found == answers_.end() ? nullptr : found->second;
  }

  // NaN and infinities are left out: implementations of one option treat them differently.
  void name_options() {
    std::map<std::string, size_t> fitting;
    size_t finite = 0;
    for (const ExportedVector& vector : group_.vectors) {
      if (std::ranges::find(vector.flags, VectorFlag::infinity) != vector.flags.end() ||
          std::ranges::find(vector.flags, VectorFlag::nan) != vector.flags.end())
        continue;
      ++finite;
      KernelInput input;
      input.op = Op::quantize;
      input.scheme = group_.scheme;
      input.weight = vector.shape;
      input.x = vector.x;
      const VectorAnswer& answer = *answer_to(vector);
      for (const RecipeOption& option : recipe_options(input)) {
        ExportedVector other = vector;
        other.planes = option.play(input).planes;
        fitting[option.name] +=
            difference(other, other.planes[codes_plane_of(other.planes)], *answer.codes).empty() &&
            scales_difference(other, *answer.scales).empty();
      }
    }
    for (const auto& [name, count] : fitting)
      if (count == finite && finite > 0) judged_.computes.push_back(name);
  }

  PartScore& score(AnswerPart part) { return judged_.parts[static_cast<size_t>(part)]; }

  void judge_one(const ExportedVector& vector, const VectorAnswer& answer) {
    if (answer.x && *answer.x != vector.x)
      throw std::runtime_error(vector.id + ": x differs from the vector's");
    const size_t codes = codes_plane_of(vector.planes);
    if (answer.codes)
      count(vector, AnswerPart::codes, difference(vector, vector.planes[codes], *answer.codes), answer);
    if (answer.scales) count(vector, AnswerPart::scales, scales_difference(vector, *answer.scales), answer);
    if (answer.y)
      count(vector, AnswerPart::outputs, difference(vector, y_plane(vector, vector.y), *answer.y), answer);
  }

  static Plane y_plane(const ExportedVector& vector, const std::vector<std::byte>& y) {
    return {"y", vector.shape.dtype, {vector.shape.n, vector.shape.k}, y};
  }

  void count(const ExportedVector& vector, AnswerPart part, const std::string& difference,
             const VectorAnswer& answer) {
    ++score(part).answered;
    if (difference.empty())
      ++score(part).right;
    else
      judged_.wrong.push_back(
          {vector.id, part, difference, vector.hunts, vector.flags, choices_of(vector, part, answer)});
  }

  std::vector<std::string> choices_of(const ExportedVector& vector, AnswerPart part,
                                      const VectorAnswer& answer) const {
    KernelInput input;
    input.op = part == AnswerPart::outputs ? Op::dequantize : Op::quantize;
    input.scheme = group_.scheme;
    input.weight = vector.shape;
    input.x = vector.x;
    input.planes = vector.planes;
    std::vector<std::string> choices;
    for (const RecipeOption& option : recipe_options(input))
      if (!option.choice.empty() && gives(option, input, vector, part, answer))
        choices.push_back(option.choice);
    return choices;
  }

  bool gives(const RecipeOption& option, const KernelInput& input, const ExportedVector& vector,
             AnswerPart part, const VectorAnswer& answer) const try {
    const KernelAnswer played = option.play(input);
    if (part == AnswerPart::outputs) return difference(vector, y_plane(vector, played.y), *answer.y).empty();
    ExportedVector other = vector;
    other.planes = played.planes;
    return part == AnswerPart::codes
               ? difference(other, other.planes[codes_plane_of(other.planes)], *answer.codes).empty()
               : scales_difference(other, *answer.scales).empty();
  } catch (const std::invalid_argument&) {  // the option does not take this x
    return false;
  }

  // Returns the first difference, or "". All NaNs of a float type are equal.
  std::string difference(const ExportedVector& vector, const Plane& want,
                         const std::vector<std::byte>& got) const {
    if (got.size() != want.bytes.size())
      return std::to_string(got.size()) + " bytes, want " + std::to_string(want.bytes.size());
    const Plane answered = {want.name, want.dtype, want.shape, got};
    const std::optional<uint64_t> at = first_difference(want, answered);
    if (!at) return "";
    const size_t step = std::max<size_t>(1, dtype_bits(want.dtype) / 8);
    const int64_t element = static_cast<int64_t>(*at / step), k = vector.shape.k;
    const std::string place = want.name == "y" ? named_indices("row", "k", element, k)
                                               : group_.scheme->place(vector.shape, kPlain, want.name, *at);
    const auto hex = [&](const std::vector<std::byte>& bytes) {
      return "0x" + hex_of(std::span(bytes).subspan(static_cast<size_t>(element) * step, step));
    };
    return place + ": want bytes " + hex(want.bytes) + ", got " + hex(got);
  }

  std::string scales_difference(
      const ExportedVector& vector,
      const std::vector<std::pair<std::string, std::vector<std::byte>>>& answered) const {
    std::vector<const Plane*> wanted;
    for (size_t i = 0; i < vector.planes.size(); ++i)
      if (i != codes_plane_of(vector.planes)) wanted.push_back(&vector.planes[i]);
    if (answered.size() != wanted.size())
      return std::to_string(answered.size()) + " planes, want " + std::to_string(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto found = answered[i].first.empty()
                             ? answered.begin() + static_cast<ptrdiff_t>(i)
                             : std::ranges::find(answered, wanted[i]->name,
                                                 &std::pair<std::string, std::vector<std::byte>>::first);
      if (found == answered.end()) return "no plane " + wanted[i]->name;
      const std::string text = difference(vector, *wanted[i], found->second);
      if (!text.empty()) return wanted[i]->name + ": " + text;
    }
    return "";
  }

  // A part that was answered once has to be answered for every vector.
  void note_missing(const ExportedVector& vector) {
    const VectorAnswer* answer = answer_to(vector);
    const bool has[kAnswerParts] = {answer && answer->codes, answer && answer->scales, answer && answer->y};
    bool any_part = false, lacks = answer == nullptr;
    for (size_t part = 0; part < kAnswerParts; ++part) {
      any_part = any_part || judged_.parts[part].answered > 0;
      lacks = lacks || (judged_.parts[part].answered > 0 && !has[part]);
    }
    if (lacks || !any_part) judged_.missing.push_back(vector.id);
  }

  const VectorGroup& group_;
  const std::map<std::string, const VectorAnswer*>& answers_;
  GroupJudgement judged_;
};

[[noreturn]] void refuse_id(const std::string& id, const std::vector<VectorGroup>& groups) {
  std::vector<std::string> known;
  for (const VectorGroup& group : groups)
    for (const ExportedVector& vector : group.vectors) known.push_back(vector.id);
  throw std::runtime_error("no vector has the id '" + id + "'" + did_you_mean(id, known));
}

}  // namespace

std::string_view part_name(AnswerPart part) {
  constexpr std::string_view kNames[] = {"codes", "scales", "outputs"};
  return kNames[static_cast<size_t>(part)];
}

std::vector<VectorFlag> GroupJudgement::flags_of_all_wrong() const {
  if (wrong.size() < 2) return {};
  std::vector<VectorFlag> flags = wrong.front().flags;
  std::erase_if(flags, [&](VectorFlag flag) {
    return !std::ranges::all_of(
        wrong, [&](const WrongAnswer& one) { return std::ranges::find(one.flags, flag) != one.flags.end(); });
  });
  return flags;
}

std::vector<GroupJudgement> judge_answers(const std::vector<VectorAnswer>& answers,
                                          const Fixtures& fixtures) {
  std::map<std::string, std::map<std::string, const VectorAnswer*>> by_scheme;
  for (const VectorAnswer& answer : answers)
    by_scheme[answer.id.substr(0, answer.id.find('/'))][answer.id] = &answer;
  std::vector<GroupJudgement> judged;
  for (const auto& [name, own] : by_scheme) {
    const Scheme* scheme = find_scheme(name);
    if (!scheme) refuse_id(own.begin()->first, {});
    const std::vector<VectorGroup> groups = make_vectors(*scheme, fixtures);
    std::map<std::string, const VectorGroup*> group_of;
    for (const VectorGroup& group : groups)
      for (const ExportedVector& vector : group.vectors) group_of[vector.id] = &group;
    std::vector<const VectorGroup*> answered;
    for (const auto& [id, answer] : own) {
      const auto found = group_of.find(id);
      if (found == group_of.end()) refuse_id(id, groups);
      if (std::ranges::find(answered, found->second) == answered.end()) answered.push_back(found->second);
    }
    for (const VectorGroup* group : answered) judged.push_back(GroupJudge(*group, own).judge());
  }
  return judged;
}

}  // namespace qcts
