// SPDX-License-Identifier: BSD-3-Clause
// The round_trip kind. E3: the file rebuilt from its parsed graph has the same bytes. E2: the same tensors
// written as a new file and read again are equal in all that a file holds. And the reference's exact
// `linear` answers bitwise the same before and after. Programs: judge_program.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/refusal.h"
#include "reference/numerics/noise.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/judge/files/file_kinds.h"
#include "suites/judge/files/payload.h"

namespace qcts {
namespace {

constexpr int64_t kRows = 3;

// By name; a checkpoint may have hundreds of thousands of tensors.
std::map<std::string_view, std::string_view> layout_hints(const Golden& golden) {
  std::map<std::string_view, std::string_view> hints;
  for (const Golden::TensorInfo& info : golden.tensors) hints.emplace(info.name, info.layout);
  return hints;
}

std::string_view hint_of(const std::map<std::string_view, std::string_view>& hints, std::string_view tensor) {
  const auto hint = hints.find(tensor);
  return hint == hints.end() ? std::string_view() : hint->second;
}

struct LinearAnswer {
  std::string tensor;
  std::vector<std::byte> y;
};

// Computes y, exactly in double, for every quantized [n, k] weight with a known layout; each tensor has its
// own random x.
std::vector<LinearAnswer> linear_answers(const Checkpoint& checkpoint, const Golden& golden) {
  std::vector<LinearAnswer> answers;
  uint64_t stream = golden.seed;
  const auto hints = layout_hints(golden);
  for (const NamedTensor& named : checkpoint.tensors) {
    ++stream;
    const std::optional<SchemeTensor> tensor = scheme_tensor(named, hint_of(hints, named.name));
    if (!tensor) continue;
    KernelInput input;
    input.op = Op::linear;
    input.scheme = tensor->scheme;
    input.weight = {tensor->dtype, tensor->n, tensor->k};
    input.m = kRows;
    try {
      input.planes = tensor->layout == kPlain
                         ? tensor->planes
                         : tensor->scheme->unpack(tensor->planes, input.weight, tensor->layout);
    } catch (const std::invalid_argument& error) {
      refuse(RefusalClass::SubclassSchema, named.name + ": " + error.what());
    }
    input.planes.insert(input.planes.end(), tensor->policy_planes.begin(), tensor->policy_planes.end());
    input.activation = tensor->activation;
    input.x_dtype = input.y_dtype = input.bias_dtype = tensor->dtype;
    input.x = noise_bytes(stream, static_cast<size_t>(kRows * tensor->k), tensor->dtype);
    const std::vector<double> y = LinearReference(input, false).sums();
    const std::span<const std::byte> bytes = std::as_bytes(std::span(y));
    answers.push_back({named.name, {bytes.begin(), bytes.end()}});
  }
  return answers;
}

std::optional<Mismatch> compare_answers(const std::vector<LinearAnswer>& want,
                                        const std::vector<LinearAnswer>& got) {
  if (want.size() != got.size())
    return Mismatch{"linear", std::to_string(want.size()) + " weights",
                    std::to_string(got.size()) + " weights", 1, 1};
  for (size_t i = 0; i < want.size(); ++i)
    if (auto found = compare_files("linear of " + want[i].tensor, want[i].y, got[i].y)) return found;
  return std::nullopt;
}

// Compares the checkpoint with the manifest entry.
std::optional<Mismatch> compare_with_manifest(const Golden& golden, const Checkpoint& checkpoint) {
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& named : checkpoint.tensors) by_name.emplace(named.name, &named);
  for (const Golden::TensorInfo& info : golden.tensors) {
    const auto entry = by_name.find(info.name);
    if (entry == by_name.end()) return Mismatch{info.name, "a tensor", "none of this name", 1, 1};
    const NamedTensor* found = entry->second;
    if (found->scheme != info.scheme && !same_meaning(found->scheme, info.scheme))
      return Mismatch{info.name + ": scheme", info.scheme, found->scheme, 1, 1};
    if (found->activation != info.activation)
      return Mismatch{info.name + ": activation", info.activation, std::string(found->activation.name()), 1,
                      1};
    if (found->layout && !info.layout.empty() && *found->layout != info.layout)
      return Mismatch{info.name + ": layout", info.layout, layout_name(found->layout), 1, 1};
  }
  if (checkpoint.tensors.size() != golden.tensors.size())
    return Mismatch{"number of tensors", std::to_string(golden.tensors.size()),
                    std::to_string(checkpoint.tensors.size()), 1, 1};
  return std::nullopt;
}

// The outcome of rebuilding files from their parsed graphs.
struct Rebuilt {
  std::optional<Mismatch> mismatch;
  std::string taken_over;     // WrittenFile::taken_over of the first one that has it
  bool sees_a_change = true;  // a changed byte of the first file is a mismatch
};

Rebuilt compare_rebuilt(const Checkpoint& checkpoint) {
  Rebuilt found;
  bool any = false;
  rebuild_files(checkpoint, [&](WrittenFile file) {
    const bool is_first = !any;
    any = true;
    if (found.mismatch) return;
    const auto original = MappedFile::open(file.path);
    const std::string name = file.path.filename().string();
    found.mismatch = compare_files(name, original->bytes(), file.bytes);
    if (found.taken_over.empty()) found.taken_over = file.taken_over;
    if (!is_first || file.bytes.empty()) return;
    file.bytes.back() ^= std::byte{1};
    found.sees_a_change = compare_files(name, original->bytes(), file.bytes).has_value();
  });
  if (!any)
    found.mismatch = Mismatch{checkpoint.path.filename().string(), "a file", "nothing to rebuild", 1, 1};
  return found;
}

// Would each comparison have seen one changed bit, device, value or byte?
std::string unnoticed_perturbation(const Checkpoint& checkpoint, const Rebuilt& rebuilt,
                                   const std::vector<LinearAnswer>& answers) {
  if (!rebuilt.sees_a_change) return "a changed byte in the file";
  const std::optional<Checkpoint> flipped = with_flipped_bit(checkpoint);
  if (flipped && !compare_payload(checkpoint, *flipped)) return "a flipped bit in the payload";
  const std::optional<Checkpoint> moved = with_moved_device(checkpoint);
  if (moved && !compare_payload(checkpoint, *moved)) return "another device of a storage";
  const std::optional<Checkpoint> changed = with_changed_value(checkpoint);
  if (changed && !compare_payload(checkpoint, *changed)) return "a changed value";
  if (!answers.empty() && !answers.back().y.empty()) {
    std::vector<LinearAnswer> changed = answers;
    changed.back().y.back() ^= std::byte{1};
    if (!compare_answers(answers, changed)) return "a changed answer of linear";
  }
  return {};
}

}  // namespace

void judge_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const auto fail = [&](std::string reason, Mismatch mismatch) {
    verdict.status = Status::fail;
    verdict.reason = std::move(reason);
    verdict.mismatch = std::move(mismatch);
  };
  const Checkpoint before = open_checkpoint(c.golden()->file, context.open);
  for (const CheckpointFinding& finding : before.findings) {
    if (finding.kind != CheckpointFinding::Kind::contradiction) continue;
    verdict.status = Status::fail;
    verdict.reason = (finding.tensor.empty() ? "" : finding.tensor + ": ") + finding.text;
    return;
  }
  if (auto found = compare_with_manifest(*c.golden(), before))
    return fail("the file does not match its manifest entry", *found);
  if (before.format == Format::torchscript) return judge_program(c, context, before, verdict);
  const Rebuilt rebuilt = compare_rebuilt(before);
  if (rebuilt.mismatch) return fail("the rebuilt file differs in its bytes (E3)", *rebuilt.mismatch);
  const Checkpoint after = rewrite_and_open(before, context.scratch / "rewritten", context.open);
  if (auto found = compare_payload(before, after))
    return fail("after qcts saved the file and read it back, it holds something else (E2)", *found);
  const std::vector<LinearAnswer> answers = linear_answers(before, *c.golden());
  if (auto found = compare_answers(answers, linear_answers(after, *c.golden())))
    return fail("linear() differs after reload", *found);
  verdict.measures.push_back({"file_bytes", "bytes", static_cast<double>(before.file_bytes), {}, {}, {}});
  verdict.measures.push_back({"tensors", "tensors", static_cast<double>(before.tensors.size()), {}, {}, {}});
  verdict.measures.push_back({"linear_weights", "tensors", static_cast<double>(answers.size()), {}, {}, {}});
  const std::string unnoticed = unnoticed_perturbation(before, rebuilt, answers);
  verdict.status = Status::pass;
  if (!unnoticed.empty())
    verdict.findings.push_back({Caveat::unnoticed_change, unnoticed + " would not have been noticed"});
  if (!rebuilt.taken_over.empty())
    verdict.findings.push_back(
        {Caveat::copied_bytes,
         rebuilt.taken_over + " was copied from the file: qcts cannot encode it the way its writer did"});
}

}  // namespace qcts
