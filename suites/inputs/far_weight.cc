// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/far_weight.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/generate_parts.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

// 2^32 is within a row of this length, and a chunk does not have a whole number of such rows.
constexpr int64_t kFarColumns = 65536 + 256, kFarRows = 511 * 128;
constexpr uint64_t kEdgeBytes = uint64_t{1} << 32;
constexpr int64_t kTerms = 60;

// Returns the dimension of n in a plane: the one in which weights of n and of other rows differ. nullopt if
// there is none. Throws std::invalid_argument if it does not count rows.
std::optional<size_t> row_dimension(const PlaneSpec& spec, const PlaneSpec& other, int64_t n) {
  std::optional<size_t> found;
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    if (spec.shape[d] == other.shape.at(d)) continue;
    if (found || spec.shape[d] != n)
      throw std::invalid_argument("plane " + spec.name + " does not grow by rows");
    found = d;
  }
  return found;
}

size_t product(std::span<const int64_t> dims) {
  return static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
}

// Fills `to` with rows of `from`, along dimension `d` of both. `source` says which row of `from` each is.
template <class Source>
void copy_rows(const Plane& from, Plane& to, size_t d, const Source& source) {
  const size_t outer = product(std::span(to.shape).first(d)),
               inner = product(std::span(to.shape).subspan(d + 1)) * dtype_bytes(to.dtype),
               to_rows = static_cast<size_t>(to.shape[d]), from_rows = static_cast<size_t>(from.shape[d]);
  for (size_t row = 0; row < to_rows; ++row) {
    const size_t taken = source(row);
    for (size_t o = 0; o < outer; ++o)
      std::memcpy(to.bytes.data() + (o * to_rows + row) * inner,
                  from.bytes.data() + (o * from_rows + taken) * inner, inner);
  }
}

// Returns the bytes of one row of codes; 0 if they are not rows of whole bytes.
uint64_t bytes_of_codes(const Scheme& scheme, const WeightShape& shape) {
  const PlaneSpec codes = scheme.plane_specs(shape).front();
  if (codes.shape.size() != 2 || codes.shape[0] != shape.n) return 0;
  return static_cast<uint64_t>(codes.shape[1]) * dtype_bytes(codes.dtype);
}

bool grows_by_rows(const Scheme& scheme, const WeightShape& shape) {
  const WeightShape twice{shape.dtype, 2 * shape.n, shape.k};
  const std::vector<PlaneSpec> specs = scheme.plane_specs(shape), others = scheme.plane_specs(twice);
  try {
    for (size_t i = 0; i < specs.size(); ++i) row_dimension(specs[i], others.at(i), shape.n);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace

std::optional<Synthetic> far_input(const Scheme& scheme) {
  const WeightShape bytes{DType::bfloat16, kFarRows, kFarColumns},
      halves{DType::bfloat16, 2 * kFarRows, kFarColumns};
  for (const WeightShape& shape : {bytes, halves}) {
    if (scheme.refusal(shape) ||
        bytes_of_codes(scheme, shape) * static_cast<uint64_t>(shape.n) < kEdgeBytes ||
        bytes_of_codes(scheme, shape) * kFarRows > 2 * kEdgeBytes || !grows_by_rows(scheme, shape))
      continue;
    const auto is_weight_only = [](const Policy policy) { return policy == kWeightOnly; };
    if (!std::ranges::any_of(scheme.activations(), is_weight_only)) return std::nullopt;
    Synthetic input{Generator::far, shape, 1, 0};
    input.seed = name_hash(input_name(input, Op::linear, kPlain));
    return input;
  }
  return std::nullopt;
}

FarWeight::FarWeight(const Scheme& scheme, const Synthetic& input, uint64_t seed)
    : scheme_(scheme),
      shape_(input.weight),
      codes_(scheme.plane_specs(input.weight).front()),
      row_bytes_(bytes_of_codes(scheme, input.weight)) {
  WeightShape few = shape_;
  few.n = static_cast<int64_t>(kChunkBytes / row_bytes_ + 1);
  const Planes planes = scheme.quantize({few.dtype, few.n, few.k, noise_weight_for(scheme, few, seed)});
  chunk_.assign(planes[0].bytes.begin(), planes[0].bytes.begin() + kChunkBytes);
  make_others(planes, seed + 1);
  make_x(seed + 2);
}

void FarWeight::make_others(const Planes& few, uint64_t seed) {
  std::vector<PlaneSpec> specs = scheme_.plane_specs(shape_);
  specs.erase(specs.begin());
  others_ = make_planes(specs);
  for (size_t i = 0; i < others_.size(); ++i) {
    const Plane& from = few[i + 1];
    const auto d =
        row_dimension({"", others_[i].dtype, others_[i].shape}, {"", from.dtype, from.shape}, shape_.n);
    if (!d) {
      others_[i].bytes = from.bytes;
      continue;
    }
    const auto count = static_cast<uint64_t>(from.shape[*d]);
    copy_rows(from, others_[i], *d, [&](size_t row) { return splitmix64(seed, row) % count; });
  }
}

void FarWeight::make_x(uint64_t seed) {
  Floats x(shape_.dtype, 1, shape_.k);
  for (int64_t k = 0; k < shape_.k; k += shape_.k / kTerms)
    x.at(0, k) = noise(seed, static_cast<uint64_t>(k));
  x.at(0, shape_.k - 1) = 1;
  x_ = x.bytes();
}

Planes FarWeight::rows(std::span<const int64_t> chosen) const {
  WeightShape few = shape_;
  few.n = static_cast<int64_t>(chosen.size());
  Planes planes = make_planes(scheme_.plane_specs(few));
  for (size_t row = 0; row < chosen.size(); ++row)
    for (uint64_t i = 0; i < row_bytes_; ++i)
      planes[0].bytes[row * row_bytes_ + i] =
          chunk_[(static_cast<uint64_t>(chosen[row]) * row_bytes_ + i) % kChunkBytes];
  for (size_t i = 0; i < others_.size(); ++i) {
    Plane& to = planes[i + 1];
    const auto d =
        row_dimension({"", others_[i].dtype, others_[i].shape}, {"", to.dtype, to.shape}, shape_.n);
    if (d)
      copy_rows(others_[i], to, *d, [&](size_t row) { return static_cast<size_t>(chosen[row]); });
    else
      to.bytes = others_[i].bytes;
  }
  return planes;
}

std::vector<int64_t> FarWeight::drawn_rows(size_t count, uint64_t seed) const {
  const auto edge = static_cast<int64_t>(kEdgeBytes / row_bytes_);
  std::set<int64_t> chosen = {0, edge, shape_.n - 1};
  for (uint64_t i = 0; chosen.size() < count; ++i) {
    const uint64_t word = splitmix64(seed, i);
    chosen.insert(i % 2 == 0 ? edge + static_cast<int64_t>(word % static_cast<uint64_t>(shape_.n - edge))
                             : static_cast<int64_t>(word % static_cast<uint64_t>(shape_.n)));
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace qcts
