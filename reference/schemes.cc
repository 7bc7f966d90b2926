#include "reference/schemes/scheme.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "reference/numerics/soft_float.h"

namespace qcts {

#define QCTS_SCHEME(family) std::vector<std::unique_ptr<Scheme>> make_##family();
#include "reference/schemes/schemes.inc"
#undef QCTS_SCHEME

std::span<const Scheme* const> schemes() {
  static const std::vector<std::unique_ptr<Scheme>> owned = [] {
    std::vector<std::unique_ptr<Scheme>> all;
#define QCTS_SCHEME(family) \
  for (auto& scheme : make_##family()) all.push_back(std::move(scheme));
#include "reference/schemes/schemes.inc"
#undef QCTS_SCHEME
    return all;
  }();
  static const std::vector<const Scheme*> views = [] {
    std::vector<const Scheme*> all;
    for (const auto& scheme : owned) all.push_back(scheme.get());
    return all;
  }();
  return views;
}

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme* scheme : schemes())
    if (scheme->name() == name) return scheme;
  return nullptr;
}

bool same_meaning(std::string_view scheme, std::string_view other) {
  const Scheme *a = find_scheme(scheme), *b = find_scheme(other);
  return a && b && a->meaning() == b->meaning();
}

namespace {
[[noreturn]] void no_policy(const Scheme& scheme, std::string_view activation) {
  throw std::invalid_argument(std::string(scheme.name()) + " has no activation policy " +
                              std::string(activation));
}
}  // namespace

std::span<const ActivationInfo> Scheme::activations() const {
  static constexpr ActivationInfo kAlone[] = {{kWeightOnly, "x enters the sum as it is"}};
  return kAlone;
}

std::vector<PlaneSpec> Scheme::policy_specs(const WeightShape&, std::string_view) const { return {}; }

std::vector<PlaneSpec> Scheme::activation_specs(const Matrix&, std::string_view activation) const {
  no_policy(*this, activation);
}

Planes Scheme::quantize_activation(const Matrix&, std::string_view activation, const Planes&) const {
  no_policy(*this, activation);
}

void Scheme::exact_activation(const Planes&, const Matrix&, std::string_view activation, int64_t,
                              std::span<double>) const {
  no_policy(*this, activation);
}

const Plane& plane(const Planes& planes, std::string_view name) {
  for (const Plane& candidate : planes)
    if (candidate.name == name) return candidate;
  throw std::out_of_range("no plane " + std::string(name));
}

Planes make_planes(const std::vector<PlaneSpec>& specs) {
  Planes planes;
  for (const PlaneSpec& spec : specs)
    planes.push_back({spec.name, spec.dtype, spec.shape, std::vector<std::byte>(spec.bytes())});
  return planes;
}

void require_planes(const Planes& planes, const std::vector<PlaneSpec>& specs) {
  for (const PlaneSpec& spec : specs) {
    const auto found =
        std::find_if(planes.begin(), planes.end(), [&](const Plane& p) { return p.name == spec.name; });
    if (found == planes.end()) throw std::invalid_argument("plane " + spec.name + " is missing");
    if (found->dtype != spec.dtype || found->shape != spec.shape || found->bytes.size() != spec.bytes())
      throw std::invalid_argument("plane " + spec.name +
                                  " has another dtype, shape or size than its scheme demands");
  }
}

std::optional<uint64_t> first_difference(const Plane& want, const Plane& got) {
  const size_t size = dtype_bytes(want.dtype);
  for (size_t i = 0; i * size < want.bytes.size(); ++i) {
    const size_t offset = i * size;
    if (offset + size > got.bytes.size()) return offset;
    if (std::memcmp(want.bytes.data() + offset, got.bytes.data() + offset, size) == 0) continue;
    const bool both_nan = is_float(want.dtype) && std::isnan(load_float(want.dtype, want.bytes, i)) &&
                          std::isnan(load_float(got.dtype, got.bytes, i));
    if (!both_nan) return offset;
  }
  if (got.bytes.size() > want.bytes.size()) return want.bytes.size();
  return std::nullopt;
}

uint64_t Scheme::payload_bytes(const WeightShape& shape, std::string_view layout,
                               std::string_view activation) const {
  uint64_t total = 0;
  for (const PlaneSpec& spec : plane_specs(shape, layout)) total += spec.bytes();
  for (const PlaneSpec& spec : policy_specs(shape, activation)) total += spec.bytes();
  return total;
}

const ActivationInfo* Scheme::find_activation(std::string_view activation) const {
  for (const ActivationInfo& info : activations())
    if (info.name == activation) return &info;
  return nullptr;
}

const LayoutInfo* Scheme::find_layout(std::string_view layout) const {
  for (const LayoutInfo& info : layouts())
    if (info.name == layout) return &info;
  return nullptr;
}

LinearOracle linear_oracle(std::span<const ExactWeight> row, std::span<const double> x, double bias,
                           int64_t group, std::optional<double> offset) {
  LinearOracle oracle;
  oracle.scaled_x = offset.has_value();
  const double o = offset.value_or(0);
  oracle.bias = bias;
  oracle.terms = static_cast<int64_t>(row.size());
  const size_t group_elems = group == 0 ? row.size() : static_cast<size_t>(group);
  double group_product = 0, group_zero = 0, group_weight = 0;
  for (size_t k = 0; k < row.size(); ++k) {
    const ExactWeight& w = row[k];
    oracle.y += x[k] * w.product;
    oracle.y += x[k] * w.zero;
    oracle.abs_product += std::fabs(x[k] * w.product);
    oracle.abs_zero += std::fabs(x[k] * w.zero);
    oracle.abs_weight += std::fabs(x[k] * (w.product + w.zero));
    oracle.abs_code += std::fabs(x[k] * w.code);
    oracle.abs_x += std::fabs(x[k]);
    oracle.sum_abs_weight += std::fabs(w.product) + std::fabs(w.zero);
    oracle.sum_abs_scale += std::fabs(w.scale);
    oracle.sum_abs_code += std::fabs(w.code);
    oracle.max_abs_x = std::max(oracle.max_abs_x, std::fabs(x[k]));
    oracle.has_zero |= w.zero != 0;
    group_product += x[k] * w.product;
    group_zero += x[k] * w.zero;
    group_weight += w.product;
    if ((k + 1) % group_elems == 0 || k + 1 == row.size()) {
      oracle.group_product += std::fabs(group_product);
      oracle.group_zero += std::fabs(group_zero);
      oracle.group_coded += std::fabs(group_product + o * group_weight);
      oracle.group_offset += std::fabs(o * group_weight);
      ++oracle.groups;
      group_product = group_zero = group_weight = 0;
    }
  }
  oracle.y += bias;
  return oracle;
}

}  // namespace qcts
