// SPDX-License-Identifier: BSD-3-Clause
// Weights that a scheme describes: values that its recipe cannot have written for any finite weight.
#include <algorithm>
#include <limits>

#include "reference/numerics/special_values.h"
#include "reference/schemes/not_written.h"
#include "reference/values/collector.h"

namespace qcts {
namespace {

uint64_t count_of(const std::vector<NotWritten>& faults) {
  uint64_t count = 0;
  for (const NotWritten& fault : faults) count += fault.count;
  return count;
}

// A scheme, and those with another recipe for planes of the same meaning: a file does not say which of them
// wrote it.
std::vector<const Scheme*> possible_recipes(const Scheme& scheme, const WeightShape& shape, Layout layout) {
  std::vector<const Scheme*> recipes = {&scheme};
  for (const Scheme* other : schemes())
    if (other != &scheme && other->meaning() == scheme.meaning() && !other->refusal(shape, layout))
      recipes.push_back(other);
  return recipes;
}

// The faults by the recipe that explains most of the weight.
std::vector<NotWritten> fewest_faults(const SchemeTensor& tensor, const WeightShape& shape,
                                      const Planes& planes) {
  std::vector<NotWritten> fewest;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const Scheme* recipe : possible_recipes(*tensor.scheme, shape, tensor.layout)) {
    if (!recipe->find_activation(tensor.activation.name()) && recipe != tensor.scheme) continue;
    std::vector<NotWritten> faults = not_written(*recipe, planes, shape, tensor.layout, tensor.activation);
    if (count_of(faults) >= least) continue;
    least = count_of(faults);
    fewest = std::move(faults);
    if (least == 0) break;
  }
  return fewest;
}

uint64_t elements_of(const Scheme& scheme, const Plane& plane, const WeightShape& shape) {
  return static_cast<uint64_t>(stored_elements(scheme, {plane.name, plane.dtype, plane.shape}, shape));
}

ValueRule rule_of(const NotWritten& fault, std::string_view place) {
  if (fault.value.find("idle bits") != fault.value.npos) return ValueRule::idle_bits;
  if (fault.plane.find("zero_point") != fault.plane.npos || place.ends_with("(zero)"))
    return ValueRule::zero_point;
  for (const char* word : {"scale", "scaler_mean", "factor", "block_min"})
    if (fault.plane.find(word) != fault.plane.npos) return ValueRule::scale;
  return ValueRule::code;
}

std::string place_of(const SchemeTensor& tensor, const ReadWeight& weight, const NotWritten& fault) {
  for (const Plane& plane : tensor.policy_planes)
    if (plane.name == fault.plane)
      return "element " + std::to_string(fault.byte_offset / dtype_bytes(plane.dtype));
  return tensor.scheme->place(weight.shape, kPlain, fault.plane, fault.byte_offset);
}

}  // namespace

void ValueCollector::add_faults(const std::string& name, const SchemeTensor& tensor,
                                const ReadWeight& weight) {
  Planes with_policy;
  if (!tensor.policy_planes.empty()) {
    with_policy = weight.plain;
    with_policy.insert(with_policy.end(), tensor.policy_planes.begin(), tensor.policy_planes.end());
  }
  const Planes& planes = tensor.policy_planes.empty() ? weight.plain : with_policy;
  const std::vector<NotWritten> faults = fewest_faults(tensor, weight.shape, planes);
  for (const NotWritten& fault : faults) {
    const std::string place = place_of(tensor, weight, fault);
    found_.findings.push_back(
        {.rule = rule_of(fault, place),
         .tensor = name,
         .plane = fault.plane,
         .place = place,
         .value = fault.value,
         .expected = fault.why,
         .count = fault.count,
         .total = elements_of(*tensor.scheme, plane(planes, fault.plane), weight.shape)});
  }
  add_padding(name, tensor, weight);
  if (!faults.empty()) return;
  const SpecialValues dense = special_values(weight.shape.dtype, weight.dense);
  if (dense.nans != 0)
    note("weights that dequantize to NaN, as the recipe writes them for zeros", name, "tensors", dense.nans);
  if (dense.infinities != 0)
    note("weights that dequantize to infinity, as the recipe writes them for the largest numbers", name,
         "tensors", dense.infinities);
}

// Planes that cannot be unpacked: padding that is not zero, positions out of order, a table that no scale
// gives.
void ValueCollector::add_unreadable(const std::string& name, const SchemeTensor& tensor,
                                    const std::string& why_not) {
  std::string plane = tensor.layout == "swizzled" ? "scale" : "", value = why_not;
  for (const Plane& candidate : tensor.planes)
    if (why_not.starts_with(candidate.name + ": ")) {
      plane = candidate.name;
      value = why_not.substr(candidate.name.size() + 2);
    }
  found_.findings.push_back(
      {.rule = ValueRule::idle_bits,
       .tensor = name,
       .plane = plane,
       .value = value,
       .expected = "the layout " + std::string(tensor.layout.name()) + " has no such bytes",
       .count = 1,
       .total = 1});
}

// A packed layout holds the codes and parameters of "plain", and padding that the packing determines.
void ValueCollector::add_padding(const std::string& name, const SchemeTensor& tensor,
                                 const ReadWeight& weight) {
  if (tensor.layout == kPlain) return;
  const Planes packed = tensor.scheme->pack(weight.plain, weight.shape, tensor.layout);
  for (size_t i = 0; i < packed.size(); ++i) {
    const std::optional<uint64_t> at = first_difference(packed[i], tensor.planes[i]);
    if (!at) continue;
    found_.findings.push_back(
        {.rule = ValueRule::idle_bits,
         .tensor = name,
         .plane = packed[i].name,
         .place = tensor.scheme->place(weight.shape, tensor.layout, packed[i].name, *at),
         .value = "padding that is not what the packing writes",
         .expected = "the layout is " + std::string(tensor.layout.name()),
         .count = 1,
         .total = packed[i].bytes.size()});
  }
}

}  // namespace qcts
