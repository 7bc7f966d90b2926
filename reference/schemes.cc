#include "reference/schemes/scheme.h"

#include <cmath>
#include <stdexcept>

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

const Plane& plane(const Planes& planes, std::string_view name) {
  for (const Plane& candidate : planes)
    if (candidate.name == name) return candidate;
  throw std::out_of_range("no plane " + std::string(name));
}

uint64_t Scheme::payload_bytes(const WeightShape& shape, std::string_view layout) const {
  uint64_t total = 0;
  for (const PlaneSpec& spec : plane_specs(shape, layout)) total += spec.bytes();
  return total;
}

const LayoutInfo* Scheme::find_layout(std::string_view layout) const {
  for (const LayoutInfo& info : layouts())
    if (info.name == layout) return &info;
  return nullptr;
}

LinearOracle linear_oracle(std::span<const ExactWeight> row, std::span<const double> x, double bias) {
  LinearOracle oracle;
  for (size_t k = 0; k < row.size(); ++k) {
    oracle.y += x[k] * row[k].product;
    oracle.y += x[k] * row[k].zero;
    oracle.abs_product += std::fabs(x[k] * row[k].product);
    oracle.abs_zero += std::fabs(x[k] * row[k].zero);
    oracle.max_abs_x = std::max(oracle.max_abs_x, std::fabs(x[k]));
  }
  oracle.y += bias;
  oracle.abs_bias = std::fabs(bias);
  oracle.terms = static_cast<int64_t>(row.size());
  return oracle;
}

}  // namespace qcts
