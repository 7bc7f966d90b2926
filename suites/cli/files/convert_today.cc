// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/convert_today.h"

#include <unordered_map>

#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"
#include "suites/base/run_error.h"
#include "suites/cli/commands.h"

namespace qcts::cli {
namespace {

constexpr std::string_view kToday = "torchao_v2";

[[noreturn]] void refuse_tensor(const NamedTensor& tensor, const std::string& why) {
  throw Failure(tensor.name + ": " + why +
                ". Its values remain: qcts dequantize, then qcts quantize by a scheme of today");
}

// Tiles have the same bytes in both generations.
Layout todays_layout(const SchemeTensor& tensor) {
  const std::optional<Layout> tiles = tensor.scheme->find_layout("tile_packed_4d");
  return tensor.layout == "tile_packed_4d_v1" && tiles ? *tiles : tensor.layout;
}

SchemeTensor in_todays_class(const NamedTensor& tensor, bool safetensors) {
  std::optional<SchemeTensor> found;
  try {
    found = scheme_tensor(tensor);
  } catch (const Refused& refused) {
    refuse_tensor(tensor, refused.refusal().detail);
  }
  if (!found) refuse_tensor(tensor, "no class of torchao 0.18.0 holds the planes of this " + tensor.type);
  found->layout = todays_layout(*found);
  found->dialect = kToday;
  const TorchaoClass* cls = torchao_class(*found->scheme, found->layout, found->activation, kToday);
  const std::string what = std::string(found->scheme->name()) + " in the layout '" +
                           std::string(found->layout.name()) + "' under the policy '" +
                           std::string(found->activation.name()) + "'";
  if (!cls) refuse_tensor(tensor, "torchao 0.18.0 has no class for " + what);
  if (safetensors && !cls->in_safetensors)
    throw Failure(tensor.name + ": torchao writes no " + std::string(cls->name) + " to safetensors: use .pt");
  return *std::move(found);
}

}  // namespace

TodaysTensors todays_tensors(const Checkpoint& checkpoint, bool safetensors) {
  TodaysTensors today;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    today.by_index.push_back(nullptr);
    if (is_plain(tensor)) continue;
    today.by_index.back() = &today.made.emplace_back(in_todays_class(tensor, safetensors));
  }
  return today;
}

EditedZip with_todays_tensors(const Checkpoint& checkpoint, const TodaysTensors& today,
                              const Limits& limits) {
  std::unordered_map<std::string_view, const SchemeTensor*> by_name;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i)
    if (today.by_index[i]) by_name.emplace(checkpoint.tensors[i].name, today.by_index[i]);
  const TorchObject& object = checkpoint.zips.empty()
                                  ? static_cast<const TorchObject&>(*checkpoint.legacies.at(0))
                                  : *checkpoint.zips[0];
  Replacements places;
  for (const TensorLeaf& leaf : tensor_leaves(object.root, limits))
    if (const auto found = by_name.find(leaf.name); found != by_name.end())
      places.emplace(leaf.place, found->second);
  return replace_tensors(object, places);
}

EncodedSafetensors encoded_today(const Checkpoint& checkpoint, const TodaysTensors& today) {
  std::vector<OutputTensor> tensors;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const NamedTensor& tensor = checkpoint.tensors[i];
    tensors.push_back(
        {tensor.name, today.by_index[i] ? nullptr : &tensor.payload[0].tensor, today.by_index[i]});
  }
  return encode_safetensors(tensors);
}

}  // namespace qcts::cli
