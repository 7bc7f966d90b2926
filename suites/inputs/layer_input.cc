// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/layer_input.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "reference/numerics/noise.h"
#include "suites/inputs/cut.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/generate_parts.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

constexpr int64_t kRowsOfX = 16;
// Few different biases for each row of a unit, and no tile of a kernel has a multiple of it.
constexpr int64_t kBiasPeriod = 48;
// Every other row of x has about this many numbers that are not zero: a full sum of a long row hides a wrong
// code.
constexpr int64_t kFewTerms = 32;
constexpr int64_t kUnitRows = 32;

std::vector<std::byte> stepped_noise(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  return noise_weight(scheme, shape, seed, false).bytes();
}

// A weight whose n is not a multiple of a unit is the beginning of a larger one.
Planes layer_planes(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  WeightShape whole = shape;
  whole.n = (shape.n + kUnitRows - 1) / kUnitRows * kUnitRows;
  if (whole.n != shape.n && !scheme.refusal(whole))
    if (auto cut = cut_planes(scheme, random_planes(scheme, whole, seed, stepped_noise), shape, kWeightOnly,
                              End::first))
      return *std::move(cut);
  return random_planes(scheme, shape, seed, stepped_noise);
}

// Each row is one of a few rows of noise. Odd ones are sparse.
Floats x_of_rows(const Synthetic& layer, uint64_t seed) {
  const int64_t k = layer.weight.k, every = std::max<int64_t>(1, k / kFewTerms);
  Floats x(layer.weight.dtype, layer.m, k);
  for (int64_t r = 0; r < layer.m; ++r) {
    const auto row = static_cast<int64_t>(splitmix64(seed, static_cast<uint64_t>(r)) % kRowsOfX);
    const bool has_few = row % 2 == 1 || layer.m == 1;
    for (int64_t c = 0; c < k; ++c)
      if (!has_few || (c + 5 * row) % every == 0 || c == k - 1)
        x.at(r, c) = noise(seed + 1, static_cast<uint64_t>(row * k + c));
  }
  return x;
}

std::optional<int64_t> number_after(std::string_view& name, std::string_view word) {
  if (!name.starts_with(word)) return std::nullopt;
  name.remove_prefix(word.size());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc()) return std::nullopt;
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  return value;
}

std::optional<Synthetic> parsed(const Scheme& scheme, Policy policy, std::string_view name) {
  const std::optional<int64_t> m = number_after(name, "_m"), n = number_after(name, "_n"),
                               k = number_after(name, "_k");
  if (!m || !n || !k) return std::nullopt;
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
    if (name == "_" + std::string(short_dtype(dtype)))
      return layer_input(scheme, policy, {dtype, *n, *k}, *m);
  return std::nullopt;
}

}  // namespace

std::optional<Synthetic> layer_input(const Scheme& scheme, Policy activation, const WeightShape& weight,
                                     int64_t m) {
  const auto exceeds = [](int64_t factor, int64_t other, int64_t most) { return factor > most / other; };
  if (m < 1 || weight.n < 1 || weight.k < 1 || exceeds(weight.n, weight.k, kMaxLayerWeights) ||
      exceeds(m, weight.n, kMaxLayerOutputs) || exceeds(m * weight.n, weight.k, kMaxLayerProducts) ||
      scheme.refusal(weight))
    return std::nullopt;
  Synthetic layer{Generator::layer, weight, m, 0, activation};
  layer.seed = name_hash(input_name(layer, Op::linear, kPlain));
  return layer;
}

std::optional<Synthetic> find_layer_input(const Scheme& scheme, std::string_view name) {
  const std::string_view family = generator_name(Generator::layer);
  if (!name.starts_with(family)) return std::nullopt;
  name.remove_prefix(family.size());
  for (const Policy policy : scheme.activations()) {
    const std::string word = "_" + std::string(policy.name());
    if (policy == kWeightOnly || !name.starts_with(word)) continue;
    if (auto found = parsed(scheme, policy, name.substr(word.size()))) return found;
  }
  return parsed(scheme, kWeightOnly, name);
}

KernelInput layer_data(const Scheme& scheme, const Synthetic& layer, uint64_t seed) {
  KernelInput input;
  input.planes = layer_planes(scheme, layer.weight, seed);
  input.x = x_of_rows(layer, seed + 2).bytes();
  if ((layer.weight.n + layer.m) % 2 != 0) return input;
  Floats bias(layer.weight.dtype, 1, layer.weight.n);
  for (int64_t r = 0; r < layer.weight.n; ++r)
    bias.at(0, r) = noise(seed + 4, static_cast<uint64_t>(r % kBiasPeriod)) / 2;
  input.bias = bias.bytes();
  return input;
}

}  // namespace qcts
