// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/dense_tensors.h"

#include <algorithm>

#include "reference/comparison/object_values.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/not_stored.h"
#include "reference/formats/io/utf8.h"
#include "reference/formats/safetensors/header.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

// An array that --allow keeps holds weights as well as a tensor does.
bool is_numpy_array(const ObjectValue& held) {
  return held.part == ObjectValue::Part::value && held.text.starts_with("_reconstruct(numpy.ndarray");
}

}  // namespace

DenseTensors::DenseTensors(const Checkpoint& checkpoint, std::string cpu_pack)
    : checkpoint_(checkpoint), cpu_pack_(std::move(cpu_pack)) {
  for (const CheckpointFinding& finding : checkpoint.findings)
    if (finding.kind == CheckpointFinding::Kind::contradiction)
      contradictions_.emplace(finding.tensor, &finding);
}

std::vector<std::string> DenseTensors::obstacles() const {
  std::vector<std::string> reasons;
  for (const CheckpointFinding& finding : checkpoint_.findings)
    if (finding.kind == CheckpointFinding::Kind::contradiction &&
        (finding.tensor.empty() || is_about_not_stored(checkpoint_, finding)))
      reasons.push_back(finding.text);
  for_each_object_value(checkpoint_, [&](const ObjectValue& held) {
    if (is_numpy_array(held))
      reasons.push_back((held.path.empty() ? "the file's value" : held.path) +
                        ": a numpy array, which is not a tensor: save torch.from_numpy(array) instead");
  });
  return reasons;
}

DenseTensors::Read DenseTensors::read(const NamedTensor& tensor) const {
  const auto without = [&](const std::string& why) { return Read{std::nullopt, tensor.name + ": " + why}; };
  if (const auto found = contradictions_.find(tensor.name); found != contradictions_.end())
    return without(found->second->text);
  if (!is_utf8(tensor.name)) return without("its name is not UTF-8, as safetensors requires");
  std::optional<Tensor> dense = dense_of(tensor, cpu_pack_);
  if (!dense) return without(why_not_dense(tensor));
  if (!has_safetensors_dtype(dense->dtype))
    return without("safetensors has no dtype for " + std::string(dtype_name(dense->dtype)));
  return {std::move(dense), ""};
}

void note_two_roundings(const Checkpoint& checkpoint) {
  const auto count = std::ranges::count_if(checkpoint.tensors, [](const NamedTensor& tensor) {
    return tensor.type == "AffineQuantizedTensor" && tensor.scheme.starts_with("int4_tinygemm");
  });
  if (count > 0)
    print_notes(
        {"int4 weights are as their kernel multiplies by them (choice int4_fma_once); dequantize() of the "
         "torchao that wrote them rounds twice (int4_dequant_two_roundings)"});
}

}  // namespace qcts::cli
