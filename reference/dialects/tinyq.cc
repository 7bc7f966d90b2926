// SPDX-License-Identifier: BSD-3-Clause
// Reads TinyQ at commit 006b7b9 (tinyq.py): the state dict of a model whose Linear modules became
// W8A32LinearLayer or W8A16LinearLayer. A module M has the plain tensors "M.int8_weights" [N, K], "M.scales"
// [N] and, under W8A32, "M.zero_points" [N]; its bias stays "M.bias". They are read as one tensor "M.weight"
// in the position of the codes. torch's squeeze() removes the dimension of a single row's scales; a W8A32
// model that was reloaded into its modules has floating zero points.
#include <algorithm>
#include <array>
#include <map>

#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

constexpr uint64_t kPlaceBytes = sizeof(NamedTensor) + 96;  // in the joined list and the tables
constexpr std::string_view kCodes = "int8_weights", kScales = "scales", kZeroPoints = "zero_points";

bool is_plain_part(const NamedTensor& tensor) {
  return (tensor.type == "Tensor" || tensor.type == "Parameter") && tensor.payload.size() == 1 &&
         tensor.payload[0].name == "data";
}

void require_row_values(const NamedTensor& tensor, std::string_view name, const Tensor& part) {
  const bool squeezed = part.shape.empty() && tensor.shape[0] == 1;
  if (!squeezed) require_shape(tensor, name, part, {tensor.shape[0]});
}

void check_layer(NamedTensor& tensor) {
  const Tensor& codes = require_payload(tensor, kCodes, {DType::int8});
  if (codes.shape.size() != 2) contradict(tensor, "int8_weights is " + shape_text(codes.shape) + ", not 2-D");
  tensor.shape = codes.shape;
  const bool w8a32 = tensor.type == "W8A32LinearLayer";
  const Tensor& scales =
      w8a32 ? require_payload(tensor, kScales, {DType::float32}) : require_payload(tensor, kScales, kFloats);
  require_row_values(tensor, kScales, scales);
  tensor.dtype = scales.dtype;
  if (w8a32)
    require_row_values(tensor, kZeroPoints,
                       require_payload(tensor, kZeroPoints,
                                       {DType::int32, DType::float32, DType::float16, DType::bfloat16}));
}

}  // namespace

bool join_tinyq_layers(std::vector<NamedTensor>& tensors, ReadBudget& budget) {
  if (std::ranges::none_of(tensors, [](const NamedTensor& t) { return t.name.ends_with(kCodes); }))
    return false;
  budget.take_bytes(kPlaceBytes * tensors.size());
  std::map<std::string_view, size_t> places;  // sorted: a file can choose names that collide in a hash table
  for (size_t i = 0; i < tensors.size(); ++i)
    if (is_plain_part(tensors[i])) places.emplace(tensors[i].name, i);
  std::vector<NamedTensor> joined;
  std::vector<bool> taken(tensors.size());
  std::map<size_t, NamedTensor> layers;  // by the position of their codes
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    const bool codes = name == kCodes || name.ends_with("." + std::string(kCodes));
    if (!codes || !places.contains(name)) continue;
    const std::string module = name.substr(0, name.size() - kCodes.size());
    if (!places.contains(module + std::string(kScales))) continue;
    NamedTensor layer;
    layer.name = module + "weight";
    layer.type = places.contains(module + std::string(kZeroPoints)) ? "W8A32LinearLayer" : "W8A16LinearLayer";
    if (places.contains(layer.name))
      refuse(RefusalClass::DuplicateEntry, layer.name + " beside " + name + ": two weights of one module");
    for (std::string_view part : {kCodes, kScales, kZeroPoints}) {
      const auto found = places.find(module + std::string(part));
      if (found == places.end()) continue;
      layer.payload.push_back({std::string(part), tensors[found->second].payload[0].tensor});
      taken[found->second] = true;
    }
    budget.take_bytes(kPlaceBytes + heap_bytes_of(layer));
    check_layer(layer);
    recognize_scheme(layer);
    layers.emplace(i, std::move(layer));
  }
  if (layers.empty()) return false;
  joined.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (const auto layer = layers.find(i); layer != layers.end())
      joined.push_back(std::move(layer->second));
    else if (!taken[i])
      joined.push_back(std::move(tensors[i]));
  }
  tensors = std::move(joined);
  return true;
}

}  // namespace qcts
