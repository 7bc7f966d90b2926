// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/drawn.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "reference/numerics/noise.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

constexpr int64_t kMaxRows = 300, kMaxGroups = 48, kMaxTailless = 4096;
// A single product, rounded to bfloat16, hides a step of its code.
constexpr int64_t kMinLinearK = 8;
constexpr uint32_t kMaxThreads = 17;
constexpr DType kDtypes[] = {DType::bfloat16, DType::float32, DType::float16};

int64_t rounded_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint64_t below(uint64_t count) { return splitmix64(seed_, next_++) % count; }
  bool coin() { return below(2) == 1; }
  // Log-uniform in 1 to max.
  int64_t up_to(int64_t max) {
    const double share = static_cast<double>(splitmix64(seed_, next_++) >> 11) * 0x1p-53;
    return std::clamp<int64_t>(std::llround(std::exp(share * std::log(max + 1.0)) - 0.5), 1, max);
  }

  // The same, but a third of the values are a multiple of 16, 32, 64 or 128, or one less or more, where
  // kernels begin another tile.
  int64_t beside_tiles_up_to(int64_t max) {
    const int64_t value = up_to(max), unit = int64_t{16} << below(4),
                  beside = rounded_up(value, unit) + static_cast<int64_t>(below(3)) - 1;
    return below(3) == 0 && beside <= max ? beside : value;
  }

 private:
  uint64_t seed_, next_ = 0;
};

bool is_accepted(const Scheme& scheme, Layout layout, const WeightShape& shape) {
  return !scheme.refusal(shape) && !scheme.refusal(shape, layout);
}

// Returns the shape with n and k rounded up to the smallest units that the scheme and the layout accept.
std::optional<WeightShape> accepted(const Scheme& scheme, Layout layout, const WeightShape& shape) {
  constexpr int64_t kUnits[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  for (const int64_t k_unit : kUnits)
    for (const int64_t n_unit : kUnits) {
      const WeightShape rounded{shape.dtype, rounded_up(shape.n, n_unit), rounded_up(shape.k, k_unit)};
      if (is_accepted(scheme, layout, rounded)) return rounded;
    }
  return std::nullopt;
}

int64_t drawn_k(Dice& dice, const Scheme& scheme, Op op) {
  const int64_t group = scheme.group(), least = op == Op::linear ? kMinLinearK : 1;
  if (group == 0) return std::max(least, dice.beside_tiles_up_to(kMaxTailless));
  const int64_t whole = group * dice.up_to(kMaxGroups);
  const int64_t tail = dice.coin() ? static_cast<int64_t>(dice.below(static_cast<uint64_t>(group))) : 0;
  return std::max(least, whole - tail);
}

// x has no more rows than the products allow, and a weight that only x's width matters of is small.
std::optional<Synthetic> draw_one(Dice& dice, Op op, const Scheme& scheme, Layout layout, int index) {
  const bool has_x = op == Op::linear || op == Op::quantize_activation;
  const int64_t k = drawn_k(dice, scheme, op), rows = std::min(kMaxRows, kMaxDrawnProducts / k);
  const int64_t drawn_n = dice.beside_tiles_up_to(std::max<int64_t>(1, rows));
  const int64_t n = index == 0 || op == Op::quantize_activation ? 1 : drawn_n;
  const size_t first = dice.below(std::size(kDtypes));
  std::optional<WeightShape> weight;
  for (size_t i = 0; i < std::size(kDtypes) && !weight; ++i)
    weight = accepted(scheme, layout, {kDtypes[(first + i) % std::size(kDtypes)], n, k});
  if (!weight) return std::nullopt;
  Synthetic input{Generator::drawn, *weight};
  const int64_t most = std::clamp<int64_t>(kMaxDrawnProducts / (weight->n * weight->k), 1, kMaxRows);
  const int64_t m = dice.beside_tiles_up_to(most);
  input.m = has_x && index != 1 ? m : 1;
  input.draw =
      Draw{index, static_cast<uint32_t>(1 + dice.below(kMaxThreads)), dice.coin() || index == kNarrowDraw};
  return input;
}

}  // namespace

std::vector<Synthetic> drawn_inputs(Op op, const Scheme& scheme, Layout layout, Policy activation,
                                    uint64_t seed) {
  std::vector<Synthetic> out;
  for (int index = 0; index < kDraws; ++index) {
    const std::string name = std::string(scheme.name()) + "/" + std::string(op_name(op)) + "/" +
                             std::string(layout.name()) + "/" + std::string(activation.name()) + "/" +
                             std::to_string(index);
    Dice dice(name_hash(name) + splitmix64(seed, 0));
    std::optional<Synthetic> input = draw_one(dice, op, scheme, layout, index);
    if (!input) continue;
    input->activation = activation;
    input->seed = dice.below(~uint64_t{0});
    out.push_back(std::move(*input));
  }
  return out;
}

std::string problem_text(const Synthetic& drawn, Op op) {
  const bool has_x = op == Op::linear || op == Op::quantize_activation;
  const Draw draw = drawn.draw.value_or(Draw{});
  std::string text = has_x ? "m " + std::to_string(drawn.m) + ", " : "";
  text += "n " + std::to_string(drawn.weight.n) + ", k " + std::to_string(drawn.weight.k) + ", " +
          std::string(dtype_name(drawn.weight.dtype)) + ", " + std::to_string(draw.threads) +
          (draw.threads == 1 ? " thread" : " threads");
  if (op != Op::linear) return text;
  const LinearTypes types = drawn.linear_types();
  if (types.x != drawn.weight.dtype) text += ", x " + std::string(dtype_name(types.x));
  if (types.y != types.x) text += ", y " + std::string(dtype_name(types.y));
  if (!draw.has_bias) return text + ", no bias";
  return text + (types.bias == types.x ? ", bias" : ", bias " + std::string(dtype_name(types.bias)));
}

}  // namespace qcts
