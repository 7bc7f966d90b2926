// SPDX-License-Identifier: BSD-3-Clause
// The assign kind. Loads the golden's tensors into a skeleton (names, shapes and dtypes) and reads every byte
// of them; peak memory may grow by the file's size, 64 MiB and what a safetensors header grants. Given a
// skeleton with one missing, one unexpected and one mismatched key, assign() must report each of them.
#include <algorithm>

#include "reference/comparison/keys.h"
#include "reference/dialects/assign.h"
#include "reference/formats/safetensors/header.h"
#include "suites/base/memory.h"
#include "suites/judge/files/file_kinds.h"

namespace qcts {
namespace {

constexpr uint64_t kSlackBytes = 64u << 20;

// Reads every payload byte in place, so that lazily mapped pages are counted.
uint64_t touch(const Assignment& assignment) {
  uint64_t sum = 0;
  for (const NamedTensor* tensor : assignment.assigned)
    for (const InnerTensor& inner : tensor->payload)
      for (std::byte value : inner.tensor.storage->bytes) sum += std::to_integer<uint64_t>(value);
  return sum;
}

// The memory that the reader may use for tensor names in addition to the slack, as its own budget allows.
uint64_t names_bytes(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const auto& file : checkpoint.safetensors) bytes += granted_bytes(file->header.size());
  for (const auto& file : checkpoint.ggufs) bytes += gguf_granted_bytes(file->description_bytes);
  return bytes;
}

std::string joined(const Assignment& assignment) {
  std::string text;
  for (const std::string& name : assignment.missing) text += " missing " + name;
  for (const std::string& name : assignment.unexpected) text += " unexpected " + name;
  for (const AssignMismatch& found : assignment.mismatched)
    text += " " + found.name + " " + found.what + " want " + found.want + " got " + found.got;
  return text.empty() ? "nothing" : text.substr(1);
}

// The skeleton declares a plain tensor for each of the file's.
std::vector<LoadedType> loaded_types(const Assignment& assignment) {
  std::vector<LoadedType> types;
  for (const NamedTensor* tensor : assignment.assigned) {
    const std::string before = "Tensor " + std::string(dtype_name(tensor->dtype)),
                      after = type_words(*tensor);
    const auto known = std::ranges::find_if(
        types, [&](const LoadedType& type) { return type.before == before && type.after == after; });
    if (known == types.end())
      types.push_back({before, after, 1});
    else
      ++known->tensors;
  }
  return types;
}

// Returns the planted fault that was not reported; empty if all were.
std::string unnamed_fault(const Checkpoint& checkpoint, const std::vector<SkeletonTensor>& skeleton) {
  std::vector<SkeletonTensor> changed = skeleton;
  changed.push_back({"qcts_planted.weight", {1}, DType::float32});
  if (assign(checkpoint, changed).missing != std::vector<std::string>{"qcts_planted.weight"})
    return "a missing key";
  if (skeleton.empty()) return "";
  changed = skeleton;
  changed.pop_back();
  if (assign(checkpoint, changed).unexpected != std::vector<std::string>{skeleton.back().name})
    return "an unexpected key";
  changed = skeleton;
  changed.back().shape.push_back(2);
  changed.back().dtype = changed.back().dtype == DType::float64 ? DType::float32 : DType::float64;
  const Assignment found = assign(checkpoint, changed);
  const bool both = found.mismatched.size() == 2 && found.mismatched[0].what == "shape" &&
                    found.mismatched[1].what == "dtype" && found.mismatched[0].name == skeleton.back().name;
  return both ? "" : "a mismatched key";
}

}  // namespace

void judge_assign(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const bool measured = reset_peak_resident();
  const std::optional<uint64_t> before = resident_bytes();
  const Checkpoint checkpoint = open_checkpoint(c.golden()->file, context.open);
  const std::vector<SkeletonTensor> skeleton = skeleton_of(checkpoint);
  const Assignment assignment = assign(checkpoint, skeleton);
  const uint64_t sum = touch(assignment);
  const std::optional<uint64_t> peak = peak_resident_bytes();

  verdict.status = Status::fail;
  if (!assignment.complete() || assignment.assigned.size() != checkpoint.tensors.size()) {
    verdict.reason = "the file's own skeleton does not match it: " + joined(assignment);
    return;
  }
  if (const std::string fault = unnamed_fault(checkpoint, skeleton); !fault.empty()) {
    verdict.reason = fault + " planted in the skeleton was not reported";
    return;
  }
  verdict.measures.push_back(
      {"tensors", "tensors", static_cast<double>(assignment.assigned.size()), {}, {}, {}});
  verdict.loaded = loaded_types(assignment);
  verdict.measures.push_back({"byte_sum", "", static_cast<double>(sum), {}, {}, {}});
  if (!measured || !before || !peak) {
    verdict.status = Status::resource;
    verdict.reason = "this Linux kernel does not report peak memory (/proc/self/clear_refs)";
    return;
  }
  const uint64_t grown = *peak - std::min(*peak, *before),
                 bound = checkpoint.file_bytes + kSlackBytes + names_bytes(checkpoint);
  verdict.measures.push_back({"peak_bytes", "bytes", static_cast<double>(grown), {}, {}, {}});
  verdict.measures.push_back({"peak_bound_bytes", "bytes", static_cast<double>(bound), {}, {}, {}});
  if (kMemoryCounts && !(grown <= bound)) {
    verdict.reason = "loading took more memory than the file's size plus 64 MiB plus what its header allows";
    verdict.mismatch = Mismatch{"peak memory", "at most " + std::to_string(bound) + " bytes",
                                std::to_string(grown) + " bytes", 1, 1};
    return;
  }
  verdict.status = Status::pass;
}

}  // namespace qcts
