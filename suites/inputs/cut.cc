// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/cut.h"

#include <algorithm>
#include <cstring>

namespace qcts {

std::vector<std::byte> cut_array(std::span<const std::byte> from, std::span<const int64_t> old_shape,
                                 std::span<const int64_t> new_shape, size_t element_bytes, End end) {
  size_t count = 1;
  for (const int64_t extent : new_shape) count *= static_cast<size_t>(extent);
  std::vector<std::byte> to(count * element_bytes);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, source = 0, stride = 1;
    for (size_t d = new_shape.size(); d-- > 0;) {
      const auto extent = static_cast<size_t>(new_shape[d]), old = static_cast<size_t>(old_shape[d]);
      source += (rest % extent + (end == End::last ? old - extent : 0)) * stride;
      rest /= extent;
      stride *= old;
    }
    std::memcpy(to.data() + i * element_bytes, from.data() + source * element_bytes, element_bytes);
  }
  return to;
}

std::optional<Planes> cut_planes(const Scheme& scheme, const Planes& planes, const WeightShape& new_shape,
                                 Policy activation, End end) {
  std::vector<PlaneSpec> specs = scheme.plane_specs(new_shape);
  for (PlaneSpec& spec : scheme.policy_specs(new_shape, activation)) specs.push_back(spec);
  Planes cut;
  for (const PlaneSpec& spec : specs) {
    const auto from = std::ranges::find(planes, spec.name, &Plane::name);
    if (from == planes.end() || from->shape.size() != spec.shape.size()) return std::nullopt;
    for (size_t d = 0; d < spec.shape.size(); ++d)
      if (spec.shape[d] > from->shape[d]) return std::nullopt;
    cut.push_back({spec.name, spec.dtype, spec.shape,
                   cut_array(from->bytes, from->shape, spec.shape, dtype_bytes(spec.dtype), end)});
  }
  return cut;
}

}  // namespace qcts
