// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/scheme.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
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

namespace {

constexpr int64_t kMaxGroup = 65536;

// Returns the length in a name that has `listed`'s name but for the length of its groups.
std::optional<int64_t> other_length(std::string_view name, const Scheme& listed) {
  if (listed.group() == 0) return std::nullopt;
  const std::string_view own = listed.name();
  const std::string digits = std::to_string(listed.group());
  const size_t at = own.rfind(digits);
  if (at == own.npos || name.size() < at) return std::nullopt;
  const std::string_view rest = own.substr(at + digits.size());
  if (!name.starts_with(own.substr(0, at)) || !name.ends_with(rest)) return std::nullopt;
  if (name.size() <= at + rest.size()) return std::nullopt;
  const std::string_view number = name.substr(at, name.size() - at - rest.size());
  int64_t length = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), length);
  const bool is_number = error == std::errc() && end == number.data() + number.size() && number[0] != '0';
  return is_number && length >= 1 && length <= kMaxGroup ? std::optional(length) : std::nullopt;
}

// Makes each scheme of another length once.
class OtherLengths {
 public:
  const Scheme* find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (const auto known = schemes_.find(name); known != schemes_.end()) return known->second.get();
    for (const Scheme* listed : schemes())
      if (const std::optional<int64_t> length = other_length(name, *listed))
        if (std::unique_ptr<Scheme> other = listed->with_group(*length); other && other->name() == name)
          return schemes_.emplace(name, std::move(other)).first->second.get();
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Scheme>, std::less<>> schemes_;
};

}  // namespace

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme* scheme : schemes())
    if (scheme->name() == name) return scheme;
  static OtherLengths others;
  return others.find(name);
}

bool is_listed(const Scheme& scheme) { return std::ranges::find(schemes(), &scheme) != schemes().end(); }

std::unique_ptr<Scheme> Scheme::with_group(int64_t) const { return nullptr; }

bool same_meaning(std::string_view scheme, std::string_view other) {
  const Scheme *a = find_scheme(scheme), *b = find_scheme(other);
  return a && b && a->meaning() == b->meaning();
}

Scheme::Scheme(SchemeInfo info) : info_(std::move(info)) {
  if (info_.meaning.empty()) info_.meaning = info_.name;
}

Planes Scheme::pack(const Planes& plain, const WeightShape& shape, Layout layout) const {
  require_planes(plain, plane_specs(shape, layout));
  return plain;
}

Planes Scheme::unpack(const Planes& packed, const WeightShape& shape, Layout layout) const {
  require_planes(packed, plane_specs(shape, layout));
  return packed;
}

double Scheme::dequantized(DType, const ExactWeight& weight) const {
  return static_cast<float>(weight.code) * static_cast<float>(weight.scale);
}

std::vector<std::byte> Scheme::dequantize(const Planes& plain, const WeightShape& shape) const {
  std::vector<std::byte> out(static_cast<size_t>(shape.n * shape.k) * dtype_bytes(shape.dtype));
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  for (int64_t n = 0; n < shape.n; ++n) {
    exact_row(plain, shape, n, row);
    for (int64_t k = 0; k < shape.k; ++k)
      store_float(shape.dtype, out, n * shape.k + k, dequantized(shape.dtype, row[k]));
  }
  return out;
}

LinearStages Scheme::recorded_stages(const WeightShape&, Policy activation, DType) const {
  throw std::logic_error("unknown roundings of the library that recorded " + std::string(name()) + " under " +
                         std::string(activation.name()));
}

namespace {
[[noreturn]] void no_policy(const Scheme& scheme, Policy activation) {
  throw std::invalid_argument(std::string(scheme.name()) + " has no activation policy " +
                              std::string(activation.name()));
}
}  // namespace

void Scheme::require_policy(Policy activation) const {
  if (activation == kWeightOnly || !find_activation(activation.name())) no_policy(*this, activation);
}

CodeSet integer_codes(int bits, bool is_signed) {
  CodeSet set;
  const int count = 1 << bits;
  for (int code = 0; code < count; ++code)
    set.values.push_back(is_signed && code >= count / 2 ? code - count : code);
  return set;
}

CodeSet float_codes(DType element) {
  const FloatFormat& format = float_format(element);
  CodeSet set;
  for (int code = 0; code < 1 << (format.has_sign + format.exponent_bits + format.mantissa_bits); ++code)
    set.values.push_back(decode_float(element, static_cast<uint64_t>(code)));
  return set;
}

void Scheme::row_codes(const Planes& plain, const WeightShape& shape, int64_t row, std::span<int> out) const {
  const std::vector<std::byte>& bytes = plain.front().bytes;
  const int mask = static_cast<int>(codes().values.size()) - 1;
  const bool pairs = bytes.size() < static_cast<size_t>(shape.n * shape.k);
  for (int64_t k = 0; k < shape.k; ++k) {
    const int64_t index = row * shape.k + k;
    const int byte = std::to_integer<int>(bytes[static_cast<size_t>(pairs ? index / 2 : index)]);
    out[static_cast<size_t>(k)] = (pairs && index % 2 ? byte >> 4 : byte) & mask;
  }
}

std::span<const ActivationInfo> Scheme::activations() const {
  static constexpr ActivationInfo kAlone[] = {{kWeightOnly.name(), "x enters the sum as it is"}};
  return kAlone;
}

std::vector<PlaneSpec> Scheme::policy_specs(const WeightShape&, Policy) const { return {}; }
std::vector<WrittenRange> Scheme::policy_ranges(const WeightShape&, Policy) const { return {}; }

std::vector<PlaneSpec> Scheme::activation_specs(const Matrix&, Policy activation) const {
  no_policy(*this, activation);
}

Planes Scheme::quantize_activation(const Matrix&, Policy activation, const Planes&) const {
  no_policy(*this, activation);
}

void Scheme::exact_activation(const Planes&, const Matrix&, Policy activation, int64_t,
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
                                  " has a different dtype, shape or size than its scheme requires");
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

uint64_t Scheme::payload_bytes(const WeightShape& shape, Layout layout, Policy activation) const {
  uint64_t total = 0;
  for (const PlaneSpec& spec : plane_specs(shape, layout)) total += spec.bytes();
  for (const PlaneSpec& spec : policy_specs(shape, activation)) total += spec.bytes();
  return total;
}

std::optional<Policy> Scheme::find_activation(std::string_view name) const {
  for (const ActivationInfo& info : activations())
    if (info.name == name) return info;
  return std::nullopt;
}

std::optional<Layout> Scheme::find_layout(std::string_view name) const {
  for (const LayoutInfo& info : layouts())
    if (info.name == name) return info;
  return std::nullopt;
}

Layout Scheme::layout_named(std::string_view name) const {
  if (const std::optional<Layout> found = find_layout(name)) return *found;
  throw std::runtime_error(info_.name + " has no layout " + std::string(name));
}

Policy Scheme::policy_named(std::string_view name) const {
  if (const std::optional<Policy> found = find_activation(name)) return *found;
  throw std::runtime_error(info_.name + " has no activation policy " + std::string(name));
}

std::optional<std::string> Scheme::refused_type(const WeightShape& shape, Layout layout,
                                                std::initializer_list<DType> dtypes) const {
  const std::string who(name());
  if (!find_layout(layout.name())) return who + " has no layout " + std::string(layout.name());
  if (std::find(dtypes.begin(), dtypes.end(), shape.dtype) != dtypes.end()) return std::nullopt;
  std::string taken;
  for (const DType* dtype = dtypes.begin(); dtype != dtypes.end(); ++dtype) {
    if (dtype != dtypes.begin()) taken += dtype + 1 == dtypes.end() ? " and " : ", ";
    taken += dtype_name(*dtype);
  }
  return who + " takes " + taken + " weights, not " + std::string(dtype_name(shape.dtype));
}

std::optional<std::string> Scheme::refused_size(const WeightShape& shape, int64_t divisor,
                                                std::string_view of) const {
  if (shape.n < 1 || shape.k < 1) return std::string(name()) + " cannot take an empty weight";
  if (divisor == 0 || shape.k % divisor == 0) return std::nullopt;
  return "K = " + std::to_string(shape.k) + " is not a multiple of " + std::string(of) +
         std::to_string(divisor);
}

std::string named_indices(std::string_view row, std::string_view col, int64_t index, int64_t cols) {
  return std::string(row) + " " + std::to_string(index / cols) + ", " + std::string(col) + " " +
         std::to_string(index % cols);
}

std::string named_nibbles(const WeightShape& shape, const WeightShape& stored, int64_t byte,
                          const std::function<int64_t(int64_t, int64_t)>& nibble_of) {
  std::string low, high;
  for (int64_t n = 0; n < stored.n; ++n) {
    for (int64_t k = 0; k < stored.k; ++k) {
      const int64_t nibble = nibble_of(n, k);
      if (nibble / 2 != byte) continue;
      (nibble % 2 ? high : low) = "row " + std::to_string(n) + ", k " + std::to_string(k) +
                                  (n >= shape.n || k >= shape.k ? " (padding)" : "");
    }
  }
  return low + " (low nibble of byte " + std::to_string(byte) + "); " + high + " (high nibble)";
}

OracleWeights oracle_weights(std::span<const ExactWeight> row, int64_t group) {
  OracleWeights weights;
  weights.row = row;
  weights.group_elems = group == 0 ? row.size() : static_cast<size_t>(group);
  double group_weight = 0;
  for (size_t k = 0; k < row.size(); ++k) {
    const ExactWeight& w = row[k];
    weights.sum_abs_weight += std::fabs(w.product) + std::fabs(w.zero);
    weights.sum_abs_scale += std::fabs(w.scale);
    weights.sum_abs_code += std::fabs(w.code);
    weights.has_zero |= w.zero != 0;
    weights.finite = weights.finite && std::isfinite(w.product) && std::isfinite(w.zero) &&
                     std::isfinite(w.product + w.zero) && std::isfinite(w.code);
    group_weight += w.product;
    if ((k + 1) % weights.group_elems == 0 || k + 1 == row.size()) {
      weights.group_weights.push_back(group_weight);
      group_weight = 0;
    }
  }
  return weights;
}

OracleX oracle_x(std::span<const double> row) {
  OracleX x;
  x.row = row;
  for (size_t k = 0; k < row.size(); ++k) {
    if (row[k] != 0) x.places.push_back(static_cast<uint32_t>(k));
    x.abs_x += std::fabs(row[k]);
    x.max_abs_x = std::max(x.max_abs_x, std::fabs(row[k]));
  }
  return x;
}

namespace {

// The sums of a group's nonzero terms.
struct GroupSums {
  double product = 0, zero = 0;
};

void add_term(const ExactWeight& w, double x, LinearOracle& oracle, GroupSums& group) {
  oracle.y += x * w.product;
  if (w.zero != 0) oracle.y += x * w.zero;  // 0 times an infinite x is NaN
  oracle.abs_product += std::fabs(x * w.product);
  oracle.abs_zero += std::fabs(x * w.zero);
  oracle.abs_weight += std::fabs(x * (w.product + w.zero));
  oracle.abs_code += std::fabs(x * w.code);
  group.product += x * w.product;
  group.zero += x * w.zero;
}

// Adds the terms at the ascending positions `places`, and their groups.
void add_terms(const OracleWeights& weights, const OracleX& x, std::span<const uint32_t> places,
               double offset, LinearOracle& oracle) {
  size_t next = 0;
  for (size_t g = 0; g < weights.group_weights.size(); ++g) {
    GroupSums group;
    const size_t end = (g + 1) * weights.group_elems;
    for (; next < places.size() && places[next] < end; ++next)
      add_term(weights.row[places[next]], x.row[places[next]], oracle, group);
    oracle.group_product += std::fabs(group.product);
    oracle.group_zero += std::fabs(group.zero);
    oracle.group_coded += std::fabs(group.product + offset * weights.group_weights[g]);
    oracle.group_offset += std::fabs(offset * weights.group_weights[g]);
  }
}

}  // namespace

LinearOracle linear_oracle(const OracleWeights& weights, const OracleX& x, double bias,
                           std::optional<double> offset) {
  LinearOracle oracle;
  oracle.scaled_x = offset.has_value();
  oracle.bias = bias;
  oracle.abs_x = x.abs_x;
  oracle.max_abs_x = x.max_abs_x;
  oracle.sum_abs_weight = weights.sum_abs_weight;
  oracle.sum_abs_scale = weights.sum_abs_scale;
  oracle.sum_abs_code = weights.sum_abs_code;
  oracle.has_zero = weights.has_zero;
  oracle.terms = static_cast<int64_t>(weights.row.size());
  oracle.groups = static_cast<int64_t>(weights.group_weights.size());
  if (weights.finite) {
    add_terms(weights, x, x.places, offset.value_or(0), oracle);
  } else {  // 0 times an infinity is NaN
    std::vector<uint32_t> all(weights.row.size());
    std::iota(all.begin(), all.end(), 0u);
    add_terms(weights, x, all, offset.value_or(0), oracle);
  }
  oracle.y += bias;
  return oracle;
}

LinearOracle linear_oracle(std::span<const ExactWeight> row, std::span<const double> x, double bias,
                           int64_t group, std::optional<double> offset) {
  return linear_oracle(oracle_weights(row, group), oracle_x(x), bias, offset);
}

}  // namespace qcts
