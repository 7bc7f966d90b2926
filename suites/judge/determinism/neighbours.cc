// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/determinism/neighbours.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "kernels/abi/problem.h"
#include "suites/inputs/input_shapes.h"

namespace qcts {
namespace {

bool takes(const Scheme& scheme, Layout layout, const WeightShape& shape) {
  return !scheme.refusal(shape) && !scheme.refusal(shape, layout);
}

// Returns the first shape of the scheme that is not `unwanted`, in the first of these dtypes.
std::optional<WeightShape> shape_of(const Scheme& scheme, Layout layout, std::span<const DType> dtypes,
                                    const WeightShape& unwanted) {
  for (const DType dtype : dtypes)
    for (const auto& [n, k] : shapes(scheme, layout))
      if (takes(scheme, layout, {dtype, n, k}) && (n != unwanted.n || k != unwanted.k) && k > 1)
        return WeightShape{dtype, n, k};
  return std::nullopt;
}

// Traits in which schemes of a family differ.
constexpr size_t kTraits = 4;
std::array<bool, kTraits> differences(const Scheme& a, const Scheme& b) {
  const SchemeParams &p = a.params(), &q = b.params();
  return {p.bits != q.bits || p.element != q.element, a.group() != b.group() || p.group_rows != q.group_rows,
          p.scale_rounding != q.scale_rounding || p.scale != q.scale,
          p.mapping != q.mapping || p.zero_point != q.zero_point || p.levels != q.levels};
}

class Neighbours {
 public:
  explicit Neighbours(const Case& c) : case_(c), synthetic_(*c.synthetic()) {}

  std::vector<Neighbour> run() && {
    add_schemes();
    const DType own = synthetic_.weight.dtype;
    constexpr DType kAll[] = {DType::float32, DType::bfloat16, DType::float16};
    for (const DType dtype : kAll)
      if (dtype != own) {
        WeightShape weight = synthetic_.weight;
        weight.dtype = dtype;
        add(*case_.scheme, weight, synthetic_.activation, std::string(dtype_name(dtype)), "the dtype");
      }
    if (const auto other = shape_of(*case_.scheme, case_.layout(), {&own, 1}, synthetic_.weight))
      add(*case_.scheme, *other, synthetic_.activation,
          "n " + std::to_string(other->n) + ", k " + std::to_string(other->k), "the shape");
    add_policies();
    if (case_.id.op == Op::linear) out_.push_back({case_, "no bias", "the bias", true});
    add_operations();
    return std::move(out_);
  }

 private:
  bool serves(Policy policy) const {
    return (case_.id.op == Op::linear || case_.id.op == Op::quantize_activation) &&
           lists_policy(case_.implementation->kernel->scheme, std::string(policy.name()).c_str());
  }

  // The next policies of the scheme: a family may have a dozen, which share their kernels.
  void add_policies() {
    constexpr size_t kMaxPolicies = 2;
    std::vector<Policy> policies;
    for (const Policy policy : case_.scheme->activations()) policies.push_back(policy);
    std::ranges::rotate(policies, std::ranges::find(policies, synthetic_.activation));
    size_t added = 0;
    for (const Policy policy : policies)
      if (added < kMaxPolicies && policy != synthetic_.activation && serves(policy) &&
          (policy != kWeightOnly || case_.id.op == Op::linear))
        added += add(*case_.scheme, synthetic_.weight, policy, "the policy " + std::string(policy.name()),
                     "the policy");
  }

  // The scheme's other operations, on a weight of the same shape if both take it.
  void add_operations() {
    constexpr Op kOps[] = {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack,
                           Op::linear};
    constexpr int64_t kRows = 5;
    const Scheme& scheme = *case_.scheme;
    Policy of_x = synthetic_.activation;
    for (const Policy policy : scheme.activations())
      if (of_x == kWeightOnly) of_x = policy;
    Layout packed = case_.layout();
    for (const LayoutInfo& layout : scheme.layouts())
      if (packed == kPlain && layout.name != kPlain.name()) packed = scheme.layout_named(layout.name);
    for (const Op op : kOps) {
      const bool is_packing = op == Op::pack || op == Op::unpack,
                 has_rows = op == Op::quantize_activation || op == Op::linear;
      if (op == case_.id.op || (is_packing && packed == kPlain)) continue;
      if (op == Op::quantize_activation ? of_x == kWeightOnly : !scheme.quantizes_weight()) continue;
      const Layout layout = is_packing ? packed : kPlain;
      const DType dtype = synthetic_.weight.dtype;
      const std::optional<WeightShape> weight = takes(scheme, layout, synthetic_.weight)
                                                    ? synthetic_.weight
                                                    : shape_of(scheme, layout, {&dtype, 1}, {});
      if (!weight) continue;
      Case other = case_;
      other.id.op = op;
      other.question = SyntheticQuestion{
          {Generator::noise, *weight, has_rows ? kRows : 0, synthetic_.seed, has_rows ? of_x : kWeightOnly},
          layout};
      if (op == Op::linear) std::get<SyntheticQuestion>(other.question).input.activation = kWeightOnly;
      out_.push_back({std::move(other), "the operation " + std::string(op_name(op)), "something"});
    }
  }

  // For each trait, the next scheme of the family that differs in it.
  void add_schemes() {
    std::vector<const Scheme*> family;
    for (const Scheme* scheme : schemes())
      if (scheme->family() == case_.scheme->family()) family.push_back(scheme);
    const auto own = std::ranges::find(family, case_.scheme);
    if (own == family.end()) return;
    std::ranges::rotate(family, own);
    std::array<bool, kTraits> has{};
    for (const Scheme* scheme : family) {
      const std::array<bool, kTraits> differs = differences(*scheme, *case_.scheme);
      bool is_new = false;
      for (size_t i = 0; i < kTraits; ++i) is_new = is_new || (differs[i] && !has[i]);
      if (!is_new || !add_scheme(*scheme)) continue;
      for (size_t i = 0; i < kTraits; ++i) has[i] = has[i] || differs[i];
    }
  }

  bool add_scheme(const Scheme& scheme) {
    const std::optional<Layout> layout = scheme.find_layout(case_.layout().name());
    const std::optional<Policy> policy = scheme.find_activation(synthetic_.activation.name());
    if (!layout || !policy) return false;
    const DType dtypes[] = {synthetic_.weight.dtype, DType::float32, DType::bfloat16, DType::float16};
    const std::optional<WeightShape> weight = shape_of(scheme, *layout, dtypes, {});
    return weight && add(scheme, *weight, *policy, "the scheme " + std::string(scheme.name()), "the scheme");
  }

  bool add(const Scheme& scheme, const WeightShape& weight, Policy policy, std::string what,
           std::string_view kept) {
    const std::optional<Layout> layout = scheme.find_layout(case_.layout().name());
    if (!layout || !takes(scheme, *layout, weight)) return false;
    Case other = case_;
    other.scheme = &scheme;
    other.id.scheme = scheme.name();
    Synthetic synthetic{Generator::noise, weight, synthetic_.m, synthetic_.seed, policy};
    other.question = SyntheticQuestion{std::move(synthetic), *layout};
    out_.push_back({std::move(other), std::move(what), kept});
    return true;
  }

  const Case& case_;
  const Synthetic& synthetic_;
  std::vector<Neighbour> out_;
};

}  // namespace

bool is_first_shape(const Case& c) {
  const WeightShape& own = c.synthetic()->weight;
  const auto first = shape_of(*c.scheme, c.layout(), {&own.dtype, 1}, {});
  return first && first->n == own.n && first->k == own.k;
}

std::vector<Neighbour> neighbours_of(const Case& c) { return Neighbours(c).run(); }

Case with_noise_of(const Case& c, const WeightShape& shape, int64_t rows_of_x) {
  const Synthetic& own = *c.synthetic();
  Case other = c;
  other.question = SyntheticQuestion{
      {Generator::noise, shape, own.m == 0 ? 0 : rows_of_x, own.seed, own.activation}, c.layout()};
  return other;
}

}  // namespace qcts
