// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/inputs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "suites/inputs/generate_parts.h"
#include "suites/inputs/generate_related.h"
#include "suites/inputs/generate_special.h"
#include "suites/inputs/input_shapes.h"

namespace qcts {
namespace {

// In the order of Generator.
const std::vector<InputFamily>& families() {
  static const std::vector<InputFamily> table = {
      {.generator = Generator::noise,
       .hunts = "a wrong formula, layout, tail, group or row",
       .ops = {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear},
       .every_shape = true,
       .every_dtype = true},
      {.generator = Generator::halfway,
       .hunts = "a rounding mode other than the recipe's: values half way between two codes, both signs",
       .ops = {Op::quantize, Op::quantize_activation}},
      {.generator = Generator::zero_rows,
       .hunts = "0/0 in a row or group of zeros inside an ordinary weight",
       .ops = {Op::quantize, Op::quantize_activation, Op::dequantize, Op::linear}},
      {.generator = Generator::extremes,
       .hunts = "subnormals flushed, the largest finite number overflowing, a lost sign of zero",
       .ops = {Op::quantize, Op::quantize_activation, Op::dequantize},
       .every_dtype = true},
      {.generator = Generator::all_codes,
       .hunts = "one code decoded or placed wrongly: signed for unsigned, nibbles swapped, a clamp one short",
       .ops = {Op::dequantize, Op::pack, Op::unpack}},
      {.generator = Generator::exact_sums,
       .hunts = "any error at all: small integers times powers of two, whose sum is exact in every order",
       .ops = {Op::linear}},
      {.generator = Generator::one_hot,
       .hunts = "a wrong weight, by reading every code back through the identity",
       .ops = {Op::linear}},
      {.generator = Generator::cancelling,
       .hunts = "a narrow accumulator: large terms of opposite sign around a small answer",
       .ops = {Op::linear}},
      {.generator = Generator::non_finite,
       .hunts = "NaN and infinities lost: skipped by a maximum, turned into numbers, or multiplied by a "
                "skipped zero",
       .ops = {Op::quantize, Op::linear},
       .every_dtype = true},
      {.generator = Generator::zero_points,
       .hunts = "an integer zero point ignored, one off, or subtracted in eight bits",
       .ops = {Op::dequantize, Op::linear}},
      {.generator = Generator::tiny_scales,
       .hunts = "small scales, weights or products flushed to zero, or read in a type that cannot hold them",
       .ops = {Op::linear},
       .every_dtype = true},
      {.generator = Generator::overflow,
       .hunts = "an answer beyond the largest finite number kept finite",
       .ops = {Op::linear}},
      {.generator = Generator::scaled_x,
       .hunts = "an added or dropped term that does not scale with x: y(8 x) is 8 y(x)",
       .ops = {Op::linear}},
      {.generator = Generator::permuted_k,
       .hunts = "a column read from the wrong place: y does not change if columns are permuted",
       .ops = {Op::linear}},
      {.generator = Generator::zero_x,
       .hunts = "state left by an earlier call: y(0) is the bias",
       .ops = {Op::linear}},
      {.generator = Generator::split_k,
       .hunts = "a lost block or tail: y is the sum of the y of two parts of k",
       .ops = {Op::linear}},
      {.generator = Generator::last_k,
       .hunts = "a dropped tail: the last element of each row is the only one that is not zero",
       .ops = {Op::linear}},
      // Sampling depends on the positions of the families above, so new ones are appended here.
      {.generator = Generator::hard_x,
       .hunts = "x quantized well only where it is ordinary: NaN, infinities, rows on one side of zero, zero "
                "points of the weight beside x's own",
       .ops = {Op::quantize_activation, Op::linear}},
      {.generator = Generator::tiles,
       .hunts = "what only a second tile shows: more than 32 rows of x, more than 256 columns, of one row "
                "more than 512, more than 2048 elements, and sums that a narrow accumulator cannot hold",
       .ops = {Op::quantize_activation, Op::linear},
       .max_shapes = 4},
      {.generator = Generator::large,
       .hunts = "a separate path for results larger than the caches",
       .ops = {Op::quantize, Op::dequantize, Op::pack, Op::unpack},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::not_sparse,
       .hunts = "a weight that the scheme cannot hold accepted with a loss",
       .ops = {Op::quantize}},
      {.generator = Generator::given_scales,
       .hunts = "a scale of x that a checkpoint gives and no quantizer finds: small, subnormal, negative, "
                "and where x is not multiplied large, zero, infinite, NaN",
       .ops = {Op::quantize_activation, Op::linear},
       .max_shapes = 1},
      {.generator = Generator::panels,
       .hunts =
           "sums put down or taken up wrongly where many rows of x meet a long k, blocks of columns that one "
           "row passes: 67 rows, more than 2048 elements, 80 columns, and 520 of one row, in every dtype",
       .ops = {Op::linear},
       .every_dtype = true,
       .excluded_from_sampling = true},
      {.generator = Generator::long_rows,
       .hunts = "an index or a sum that ends too early: rows of more than 14,000 elements, and more than "
                "65,535 rows of the weight or of x",
       .ops = {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 3},
      {.generator = Generator::rows,
       .hunts = "the rest of a path for several rows of x: every number of them up to 17, which noise leaves "
                "out, and rests of 2 to 7 behind 16",
       .ops = {Op::quantize_activation, Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::columns,
       .hunts = "the rest of a path for several columns or several k: every kind of rest by 4, 8 and 16",
       .ops = {Op::quantize, Op::dequantize, Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 5},
      {.generator = Generator::wide_bias,
       .hunts = "a float32 bias read in x's type",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::wide_y,
       .hunts = "a float32 answer rounded to x's type",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::wide_x,
       .hunts = "float32 x read or rounded as the weight's narrower type",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::big_x,
       .hunts =
           "x clamped, or a finite answer beyond float16's largest number lost on its way to a wider type",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::half_overflow,
       .hunts = "infinite float16 answers saturated",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::half_subnormal,
       .hunts = "subnormal float16 x read as zero",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::block_scales,
       .hunts = "a lost one-byte block scale that is subnormal or that float16 or a shift cannot hold",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::outliers,
       .hunts = "x kept in too few bits next to a larger element, or scaled by a factor that overflows or "
                "vanishes",
       .ops = {Op::linear},
       .every_dtype = true,
       .excluded_from_sampling = true,
       .max_shapes = 1},
      {.generator = Generator::one_sign,
       .hunts = "sums that saturate or wrap: all codes and all of x at their maximum, with one sign",
       .ops = {Op::linear},
       .excluded_from_sampling = true,
       .max_shapes = 1},
  };
  return table;
}

// Does the input test the quantization of x in a way that no other input of the family does?
bool suits_policy(Generator generator) {
  switch (generator) {
    case Generator::cancelling:
    case Generator::last_k:
    case Generator::non_finite:
    case Generator::zero_points:
    case Generator::tiny_scales:
    case Generator::overflow:
    case Generator::half_overflow:
    case Generator::half_subnormal:
    case Generator::outliers:
    case Generator::one_sign:
      return false;
    default:
      return !is_relation(generator);
  }
}

std::vector<int64_t> batch_sizes(Kind kind, Op op, Generator generator, const Shape& shape, bool first) {
  if (kind == Kind::determinism) {
    if (generator == Generator::panels) return {17};
    return generator == Generator::rows ? std::vector<int64_t>{11, 33} : std::vector<int64_t>{1, 5, 17};
  }
  if (generator == Generator::one_hot) return {shape.second};
  // With one row of x and a third of the weight's rows zero, too few sums would leave their bounds if a code
  // changed.
  if (generator == Generator::zero_rows || generator == Generator::hard_x) return {5};
  if (generator == Generator::given_scales) return given_scale_batches(op);
  if (generator == Generator::block_scales) return {1, 5};
  if ((generator == Generator::tiles || generator == Generator::panels) && shape.first == kDecodeColumns)
    return {1};
  if (generator == Generator::tiles) return {shape.first > 256 || shape.second > 2048 ? 2 : 37};
  if (generator == Generator::panels) return {67};
  if (generator == Generator::long_rows) {
    if (shape.second > 2048) return {1, 5};
    return {shape.first == kManyRows ? 1 : kManyRows};
  }
  if (is_wide(generator) || is_half(generator) || generator == Generator::big_x) return {5};
  if (generator == Generator::noise)
    return first ? std::vector<int64_t>{1, 2, 3, 4, 5, 8, 16, 17} : std::vector<int64_t>{1, 7};
  if (generator == Generator::rows) return {6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 20, 22, 23, 31, 33};
  if (generator == Generator::columns) return {1, 7};
  return {1, 5};
}

std::vector<int64_t> batches_to_quantize(Generator generator, const std::vector<int64_t>& of_linear) {
  if (generator == Generator::rows) return {1, 2, 17};
  const bool own = generator == Generator::tiles || generator == Generator::given_scales ||
                   generator == Generator::long_rows;
  return own ? of_linear : std::vector<int64_t>{5};
}

// FNV-1a, 64 bits.
uint64_t name_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

struct Request {
  Kind kind;
  Op op;
  const Scheme& scheme;
  Layout layout;
  Policy activation;
  InputSet set;
  GeneratorSupport& support;
};

bool has_rows_of_x(Op op) { return op == Op::linear || op == Op::quantize_activation; }

// bfloat16, or another dtype if the scheme does not accept it. The widest dtype for tiles: bfloat16 hides the
// errors of long sums.
DType first_dtype(const InputFamily& family, const Request& request) {
  if (is_half(family.generator)) return DType::float16;
  constexpr DType kNarrow[] = {DType::bfloat16, DType::float32, DType::float16},
                  kWide[] = {DType::float32, DType::bfloat16, DType::float16};
  // In bfloat16 the order of a sum is hardly visible.
  const bool wide = family.generator == Generator::tiles ||
                    (family.generator == Generator::rows && request.kind == Kind::determinism);
  for (const DType dtype : wide ? kWide : kNarrow)
    for (const auto& [n, k] : shapes(request.scheme, request.layout))
      if (!request.scheme.refusal({dtype, n, k}) && !request.scheme.refusal({dtype, n, k}, request.layout))
        return dtype;
  return DType::bfloat16;
}

// Other dtypes and narrow families use the first shapes that the scheme accepts.
size_t max_shapes(const InputFamily& family, const Request& request, DType dtype) {
  if (request.set == InputSet::few) return 1;
  return family.every_shape && dtype == DType::bfloat16 && request.activation == kWeightOnly
             ? 99
             : family.max_shapes;
}

void add_family(const InputFamily& family, const Request& request, std::vector<Synthetic>& out) {
  std::vector<DType> dtypes = {DType::bfloat16, DType::float32, DType::float16};
  if (!family.every_dtype || request.set != InputSet::all) dtypes = {first_dtype(family, request)};
  for (const DType dtype : dtypes) {
    size_t taken = 0;
    const bool weight_only = request.activation == kWeightOnly;
    const bool gives_scale = family.generator == Generator::given_scales;
    const size_t max_taken = max_shapes(family, request, dtype);
    for (const auto& [n, k] :
         shapes_of_family(family, request.kind, request.scheme, request.layout, request.set)) {
      const WeightShape weight{dtype, n, k};
      // A single product rounded to bfloat16 hides a step of its code.
      if (request.op == Op::linear && k == 1) continue;
      // n does not matter for x.
      if (request.op == Op::quantize_activation && n > 256) continue;
      if (taken == max_taken || request.scheme.refusal(weight) ||
          request.scheme.refusal(weight, request.layout) ||
          !request.support.has(request.op, family.generator, weight) ||
          (gives_scale && !has_given_scale(request.scheme, weight, request.activation)))
        continue;
      std::vector<int64_t> batches = {1};
      if (has_rows_of_x(request.op))
        batches = batch_sizes(request.kind, request.op, family.generator, {n, k}, taken == 0 && weight_only);
      if (request.op == Op::quantize_activation) batches = batches_to_quantize(family.generator, batches);
      if (request.set == InputSet::few) batches = {batches.back()};
      ++taken;
      for (const int64_t m : batches) {
        Synthetic input{family.generator, weight, m, 0, request.activation};
        input.seed = name_hash(input_name(input, request.op, request.layout));
        out.push_back(std::move(input));
      }
    }
  }
}

bool asks_about_schedules(Generator generator) {
  return generator == Generator::noise || generator == Generator::panels || generator == Generator::rows;
}

}  // namespace

bool GeneratorSupport::has(Op op, Generator generator, const WeightShape& shape) {
  // Sparse schemes support the generators based on noise; a row of zeros has no codes there.
  if (is_sparse(*scheme_, shape))
    return generator == Generator::noise || generator == Generator::all_codes ||
           generator == Generator::one_hot || generator == Generator::last_k ||
           generator == Generator::large || generator == Generator::not_sparse ||
           generator == Generator::panels || generator == Generator::long_rows ||
           generator == Generator::rows || generator == Generator::columns;
  if (generator == Generator::not_sparse) return false;
  if (op == Op::linear && !remembered(finite_, shape, has_finite_weights)) return false;
  if (generator == Generator::outliers) return remembered(outliers_, shape, has_outliers);
  if (generator != Generator::exact_sums && !is_relation(generator))
    return carries(*scheme_, generator, shape);
  if (!remembered(exact_, shape, has_exact_sums)) return false;
  if (generator == Generator::exact_sums) return true;
  const WeightShape row = few_groups(shape);
  const auto [at, is_new] = relations_.try_emplace({generator, row.dtype, row.k}, false);
  if (is_new) at->second = has_relation(*scheme_, generator, row);
  return at->second;
}

// A long row behaves like a few of its groups, two of which can be separated, with the same tail.
WeightShape GeneratorSupport::few_groups(const WeightShape& shape) const {
  constexpr int64_t kEnough = 64, kCuttable = 2;
  const int64_t group = std::max<int64_t>(scheme_->group(), 1),
                unit = group * std::max(kCuttable, (kEnough + group - 1) / group);
  WeightShape few = shape;
  if (few.k > 2 * unit) few.k = unit + few.k % unit;
  return few;
}

bool GeneratorSupport::remembered(Answers& answers, const WeightShape& shape,
                                  bool (*ask)(const Scheme&, const WeightShape&)) {
  const WeightShape row = few_groups(shape);
  const auto [at, is_new] = answers.try_emplace({row.dtype, row.k}, false);
  if (is_new) at->second = ask(*scheme_, row);
  return at->second;
}

std::span<const InputFamily> input_families() { return families(); }

const InputFamily& input_family(Generator generator) { return families().at(static_cast<size_t>(generator)); }

std::vector<Synthetic> synthetic_inputs(Kind kind, Op op, const Scheme& scheme, Layout layout, InputSet set,
                                        GeneratorSupport* known) {
  std::vector<Synthetic> out;
  GeneratorSupport own(scheme);
  GeneratorSupport& support = known == nullptr ? own : *known;
  for (const InputFamily& family : families()) {
    if (std::find(family.ops.begin(), family.ops.end(), op) == family.ops.end()) continue;
    if (set == InputSet::few && family.excluded_from_sampling) continue;
    // Determinism does not depend on values.
    if (kind == Kind::determinism && !asks_about_schedules(family.generator)) continue;
    const InputSet request_set = kind == Kind::determinism && op != Op::linear ? InputSet::few : set;
    for (const Policy policy : scheme.activations()) {
      const bool weight_only = policy == kWeightOnly;
      if (weight_only ? op == Op::quantize_activation : !has_rows_of_x(op)) continue;
      if (weight_only ? family.generator != Generator::hard_x : suits_policy(family.generator))
        add_family(family, {kind, op, scheme, layout, policy, request_set, support}, out);
    }
  }
  return out;
}

std::string input_name(const Synthetic& input, Op op, Layout layout) {
  std::string name(generator_name(input.generator));
  if (layout != kPlain) name += "_" + std::string(layout.name());
  if (input.activation != kWeightOnly) name += "_" + std::string(input.activation.name());
  if (has_rows_of_x(op)) name += "_m" + std::to_string(input.m);
  return name + "_n" + std::to_string(input.weight.n) + "_k" + std::to_string(input.weight.k) + "_" +
         std::string(short_dtype(input.weight.dtype));
}

std::string_view short_dtype(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return "bf16";
    case DType::float32:
      return "f32";
    case DType::float16:
      return "f16";
    default:
      return dtype_name(dtype);
  }
}

}  // namespace qcts
