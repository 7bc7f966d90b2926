// SPDX-License-Identifier: BSD-3-Clause
// The round_trip kind for TorchScript goldens, inside a provider that can run them. The program's outputs
// must equal its producer's bitwise. The provider then saves it; our own reader must find the same tensors,
// constants, attributes and classes in the saved file, and the reloaded program must return the same outputs.
// The goldens use exact sums, so the outputs are the same on every processor.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "reference/dialects/torchscript.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/safetensors/safetensors.h"
#include "suites/judge/expected/compare.h"
#include "suites/judge/files/file_kinds.h"
#include "suites/judge/files/payload.h"
#include "suites/providers/kernel_run.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

std::optional<DType> dtype_of_abi(uint32_t abi) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (abi != QCTS_NONE && abi_dtype(static_cast<DType>(i)) == abi) return static_cast<DType>(i);
  return std::nullopt;
}

std::string shape_json(const std::vector<int64_t>& shape) { return nlohmann::json(shape).dump(); }

// Collects the planes passed to `emit`; `problem` says what was wrong with one.
struct Returned {
  std::vector<Tensor> tensors;
  std::string problem;
};

void take_output(void* context, const qcts_plane* plane) noexcept {
  Returned& returned = *static_cast<Returned*>(context);
  try {
    const std::optional<DType> dtype = dtype_of_abi(plane->dtype);
    if (!dtype || plane->struct_size < sizeof(qcts_plane) || plane->ndim > 8) {
      returned.problem = "it emitted a plane of no known type or of more than 8 dimensions";
      return;
    }
    std::vector<int64_t> shape(plane->shape, plane->shape + plane->ndim);
    const uint64_t count = bytes_of(*dtype, shape);
    const auto* first = static_cast<const std::byte*>(plane->data);
    std::vector<std::byte> bytes(count);
    if (count > 0) std::memcpy(bytes.data(), first, count);
    returned.tensors.push_back(make_tensor(*dtype, std::move(shape), std::move(bytes)));
  } catch (...) {
    returned.problem = "it emitted a plane that cannot be read";
  }
}

using Expected = std::map<std::string, Tensor>;

Expected read_expected(const Golden& golden) {
  Expected expected;
  for (const SafetensorsEntry& entry : read_safetensors(MappedFile::open(golden.expected)).entries)
    expected[entry.name] = entry.tensor;
  return expected;
}

std::vector<Tensor> outputs_of(const Implementation& runner, const fs::path& file, const Golden::Run& run,
                               const Expected& expected, uint32_t threads) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<qcts_plane> planes;
  inputs.reserve(run.inputs.size());
  for (const std::string& key : run.inputs) {
    const Tensor& tensor = expected.at(key);
    inputs.push_back(row_major_bytes(tensor));
    planes.push_back(abi_plane({"", tensor.dtype, tensor.shape}, inputs.back().data()));
    planes.back().name = "";
  }
  Returned returned;
  const std::string path = file.string();
  qcts_program_call call = {};
  call.struct_size = sizeof call;
  call.threads = threads;
  call.path = path.c_str();
  call.method = run.method.c_str();
  call.inputs = planes.data();
  call.n_inputs = static_cast<uint32_t>(planes.size());
  call.emit = take_output;
  call.context = &returned;
  const Support answer = provider_run_program(runner, call);
  if (answer.status != QCTS_OK) throw ProviderFault("run_program(" + run.method + "): " + answer.reason);
  if (!returned.problem.empty()) throw ProviderFault("run_program(" + run.method + "): " + returned.problem);
  return std::move(returned.tensors);
}

std::optional<Mismatch> compare_output(const std::string& where, const Tensor& want, const Tensor& got) {
  const auto field = [&](const char* name, const std::string& a, const std::string& b) {
    return Mismatch{where + ": " + name, a, b, 1, 1};
  };
  if (want.dtype != got.dtype)
    return field("dtype", std::string(dtype_name(want.dtype)), std::string(dtype_name(got.dtype)));
  if (want.shape != got.shape) return field("shape", shape_json(want.shape), shape_json(got.shape));
  const Comparison found = compare_bitwise(want.dtype, row_major_bytes(want), row_major_bytes(got));
  if (found.differing == 0) return std::nullopt;
  return Mismatch{where + ": element " + std::to_string(found.first), found.want, found.got, found.differing,
                  found.total};
}

std::optional<Mismatch> compare_outputs(const std::string& where, const std::vector<Tensor>& want,
                                        const std::vector<Tensor>& got) {
  if (want.size() != got.size())
    return Mismatch{where, std::to_string(want.size()) + " tensors", std::to_string(got.size()) + " tensors",
                    1, 1};
  for (size_t i = 0; i < want.size(); ++i)
    if (auto found = compare_output(where + " " + std::to_string(i), want[i], got[i])) return found;
  return std::nullopt;
}

std::vector<Tensor> recorded(const Golden::Run& run, const Expected& expected) {
  std::vector<Tensor> tensors;
  for (const std::string& key : run.outputs) tensors.push_back(expected.at(key));
  return tensors;
}

// Lists the paths, classes and attributes of all modules, and the constants of the classes.
std::string outline_of(const Checkpoint& checkpoint, const Limits& limits) {
  nlohmann::ordered_json outline = nlohmann::ordered_json::array();
  for (const ScriptModule& module : script_modules(*checkpoint.script, limits)) {
    nlohmann::ordered_json constants = nlohmann::ordered_json::object();
    for (const ScriptClass::Constant& constant : module.cls->constants)
      constants[constant.name] = constant.value;
    outline.push_back({module.path, module.cls->name, module.attributes, constants});
  }
  return outline.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<Mismatch> compare_saved(const Checkpoint& before, const Checkpoint& saved,
                                      const Limits& limits) {
  if (saved.format != Format::torchscript)
    return Mismatch{"saved file", "torchscript", std::string(format_name(saved.format)), 1, 1};
  if (auto found = compare_payload(before, saved)) return found;
  const std::string want = outline_of(before, limits), got = outline_of(saved, limits);
  if (want == got) return std::nullopt;
  const size_t at = std::ranges::mismatch(want, got).in1 - want.begin();
  const size_t from = at < 40 ? 0 : at - 40;
  return Mismatch{"modules and attributes", want.substr(from, 80), got.substr(std::min(from, got.size()), 80),
                  1, 1};
}

// Returns the change that would have gone unnoticed: of an output element or of a tensor's bit; empty if
// none.
std::string unnoticed_change(const Checkpoint& before, const std::vector<Tensor>& outputs) {
  std::vector<Tensor> changed = outputs;
  for (Tensor& tensor : changed) {
    std::vector<std::byte> bytes = row_major_bytes(tensor);
    if (bytes.empty()) continue;
    perturb_element(tensor.dtype, bytes, 0);
    tensor = make_tensor(tensor.dtype, tensor.shape, std::move(bytes));
    if (!compare_outputs("", outputs, changed)) return "a changed element in an output";
    break;
  }
  const std::optional<Checkpoint> flipped = with_flipped_bit(before);
  if (flipped && !compare_payload(before, *flipped)) return "a flipped bit in a tensor";
  return {};
}

}  // namespace

void judge_program(const Case& c, const JudgeContext& context, const Checkpoint& before, Verdict& verdict) {
  const auto end = [&](Status status, std::string reason, std::optional<Mismatch> mismatch = {}) {
    verdict.status = status;
    verdict.reason = std::move(reason);
    verdict.mismatch = std::move(mismatch);
  };
  if (c.runner == nullptr && !is_program(*c.golden()))
    return end(Status::not_supported,
               "a TorchScript program, and its manifest entry has neither runs nor the flag torchscript");
  if (c.runner == nullptr)
    return end(Status::not_supported,
               "no provider here loads, runs and saves TorchScript; LibTorch's plug-in does (QCTS_TORCH=ON)");
  const Expected expected = c.golden()->runs.empty() ? Expected() : read_expected(*c.golden());
  // The provider does not see the fixtures.
  const fs::path given = context.scratch / "given.pt", saved = context.scratch / "saved.pt";
  fs::copy_file(c.golden()->file, given, fs::copy_options::overwrite_existing);
  std::vector<std::vector<Tensor>> answers;
  for (const Golden::Run& run : c.golden()->runs) {
    answers.push_back(outputs_of(*c.runner, given, run, expected, context.threads));
    if (auto found = compare_outputs(run.method + " returns", recorded(run, expected), answers.back()))
      return end(Status::fail, "the program's output differs from its producer's record", found);
  }
  const Support answer = provider_load_save(*c.runner, given, saved);
  if (answer.status == QCTS_UNSUPPORTED) return end(Status::not_supported, "load_save: " + answer.reason);
  if (answer.status != QCTS_OK) return end(Status::fail, "load_save: " + answer.reason);
  if (!fs::exists(saved)) return end(Status::fail, "load_save: returned QCTS_OK and left no file");
  const Checkpoint after = open_checkpoint(saved, context.open);
  if (auto found = compare_saved(before, after, context.open.limits))
    return end(Status::fail, "the program's contents differ after load and save", found);
  size_t outputs = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Golden::Run& run = c.golden()->runs[i];
    const std::vector<Tensor> again = outputs_of(*c.runner, saved, run, expected, context.threads);
    if (auto found = compare_outputs(run.method + " returns", answers[i], again))
      return end(Status::fail, "the program's output differs after load and save", found);
    outputs += again.size();
  }
  verdict.measures.push_back({"file_bytes", "bytes", static_cast<double>(before.file_bytes), {}, {}, {}});
  verdict.measures.push_back({"tensors", "tensors", static_cast<double>(before.tensors.size()), {}, {}, {}});
  verdict.measures.push_back({"outputs", "tensors", static_cast<double>(outputs), {}, {}, {}});
  verdict.measures.push_back({"operator_set", "", static_cast<double>(before.script->version), {}, {}, {}});
  const std::string unnoticed =
      unnoticed_change(before, answers.empty() ? std::vector<Tensor>() : answers.front());
  end(Status::pass, "");
  if (!unnoticed.empty())
    verdict.findings.push_back({Caveat::unnoticed_change, unnoticed + " would not have been noticed"});
  if (answers.empty())
    verdict.findings.push_back(
        {Caveat::code_not_run,
         "load and save keep its contents; no run of it is recorded, so its code was not run"});
}

}  // namespace qcts
