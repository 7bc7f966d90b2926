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

const std::vector<InputFamily>& families() {
  static const std::vector<InputFamily> table = {
      {"noise",
       "a wrong formula, layout, tail, group or row",
       {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear},
       true,
       true},
      {"halfway",
       "a rounding mode other than the recipe's: values half way between two codes, both signs",
       {Op::quantize, Op::quantize_activation}},
      {"zero_rows",
       "0/0 in a row or group without a maximum, inside a weight that has others",
       {Op::quantize, Op::quantize_activation, Op::dequantize, Op::linear}},
      {"extremes",
       "subnormals flushed, the largest finite overflowed, a sign of zero lost",
       {Op::quantize, Op::quantize_activation, Op::dequantize},
       false,
       true},
      {"all_codes",
       "one code decoded or placed wrongly: signed for unsigned, nibbles swapped, a clamp one short",
       {Op::dequantize, Op::pack, Op::unpack}},
      {"exact_sums",
       "any error at all: small integers times powers of two, whose sum is exact in every order",
       {Op::linear}},
      {"one_hot", "a wrong weight, by reading every code back through the identity", {Op::linear}},
      {"cancelling", "a narrow accumulator: large terms of opposite sign around a small answer", {Op::linear}},
      {"non_finite",
       "NaN and infinities lost: skipped by a maximum, turned into numbers, or multiplied by a skipped zero",
       {Op::quantize, Op::linear},
       false,
       true},
      {"zero_points",
       "an integer zero point ignored, one off, or subtracted in eight bits",
       {Op::dequantize, Op::linear}},
      {"tiny_scales",
       "small scales, weights or products flushed to zero, or read in a type that has none so small",
       {Op::linear},
       false,
       true},
      {"overflow", "an answer beyond the largest finite number kept finite", {Op::linear}},
      {"scaled_x", "something added or cut off that does not grow with x: y(8 x) is 8 y(x)", {Op::linear}},
      {"permuted_k", "a column taken from the wrong place: y stays when columns change places", {Op::linear}},
      {"zero_x", "something of an earlier call: y(0) is the bias", {Op::linear}},
      {"split_k", "a block or a tail lost: y is the sum of what two parts of k give", {Op::linear}},
      {"last_k", "a dropped tail: the last element of each row is the only one that is not zero", {Op::linear}},
      // What earlier ones are dealt to schemes by their place: new ones stand behind them.
      {"hard_x",
       "x quantized well only where it is ordinary: NaN, infinities, rows on one side of zero, zero points "
       "of the "
       "weight beside x's own",
       {Op::quantize_activation, Op::linear}},
      {"tiles",
       "what only a second tile shows: more than 32 rows of x, more than 256 columns, of one row more "
       "than 512, more than 2048 elements, and "
       "sums that a narrow accumulator cannot hold",
       {Op::quantize_activation, Op::linear},
       false,
       false,
       false,
       4},
      {"large",
       "a path of its own for results that caches do not hold",
       {Op::quantize, Op::dequantize, Op::pack, Op::unpack},
       false,
       false,
       true,
       1},
      {"not_sparse",
       "a weight that the scheme cannot hold kept all the same, with something lost",
       {Op::quantize}},
      {"given_scales",
       "a scale of x that a checkpoint gives and no quantizer finds: small, subnormal, negative, and where x "
       "is not multiplied large, zero, infinite, NaN",
       {Op::quantize_activation, Op::linear},
       false,
       false,
       false,
       1},
      {"panels",
       "sums put down or taken up wrongly where many rows of x meet a long k, blocks of columns that one row "
       "passes: 67 rows, more than 2048 elements, 80 columns, and 520 of one row, in every dtype",
       {Op::linear},
       false,
       true,
       true},
      {"long",
       "an index or a sum that ends too early: rows of more than 14,000 elements, and more than 65,535 rows "
       "of "
       "the weight or of x",
       {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear},
       false,
       false,
       true,
       3},
      {"rows",
       "the rest of a path for several rows of x: every number of them up to 17, which noise leaves out, and "
       "rests of 2 to 7 behind 16",
       {Op::quantize_activation, Op::linear},
       false,
       false,
       true,
       1},
      {"columns",
       "the rest of a path for several columns or several k: every kind of rest by 4, 8 and 16",
       {Op::quantize, Op::dequantize, Op::linear},
       false,
       false,
       true,
       5},
      {"wide_bias", "a bias read in x's type that has its own, float32", {Op::linear}, false, false, true, 1},
      {"wide_y",
       "an answer rounded to x's type that is wanted in float32",
       {Op::linear},
       false,
       false,
       true,
       1},
      {"wide_x",
       "float32 x read or rounded as the weight's narrower type",
       {Op::linear},
       false,
       false,
       true,
       1},
      {"big_x",
       "x clamped, or a finite answer beyond float16's largest number lost on its way to a wider type",
       {Op::linear},
       false,
       false,
       true,
       1},
      {"half_overflow", "float16 answers saturated that are infinite", {Op::linear}, false, false, true, 1},
      {"half_subnormal", "subnormal float16 x taken for zero", {Op::linear}, false, false, true, 1},
      {"block_scales",
       "a block's scale of one byte lost that is subnormal, or that float16 or a shift cannot hold",
       {Op::linear},
       false,
       false,
       true,
       1},
      {"outliers",
       "x kept in too few bits beside a larger element, or scaled by what overflows or vanishes",
       {Op::linear},
       false,
       true,
       true,
       1},
      {"one_sign",
       "sums that saturate or wrap: all codes and all of x as large as they get, of one sign",
       {Op::linear},
       false,
       false,
       true,
       1},
  };
  return table;
}

// Does the input tell anything of how x is quantized that another one of the family does not?
bool suits_policy(std::string_view generator) {
  for (const std::string_view weight_only :
       {"cancelling", "last_k", "non_finite", "zero_points", "tiny_scales", "overflow", "half_overflow",
        "half_subnormal", "outliers", "one_sign"})
    if (generator == weight_only) return false;
  return !is_relation(generator);
}

std::vector<int64_t> batch_sizes(Kind kind, Op op, std::string_view generator,
                                 const Shape& shape, bool first) {
  if (kind == Kind::determinism) {
    if (generator == "panels") return {17};
    return generator == "rows" ? std::vector<int64_t>{11, 33} : std::vector<int64_t>{1, 5, 17};
  }
  if (generator == "one_hot") return {shape.second};
  // One row of x and a third of the weight's rows zero leave too few sums that a changed code would move out
  // of their bounds.
  if (generator == "zero_rows" || generator == "hard_x") return {5};
  if (generator == "given_scales") return given_scale_batches(op);
  if (generator == "block_scales") return {1, 5};
  if ((generator == "tiles" || generator == "panels") && shape.first == kDecodeColumns) return {1};
  if (generator == "tiles") return {shape.first > 256 || shape.second > 2048 ? 2 : 37};
  if (generator == "panels") return {67};
  if (generator == "long") {
    if (shape.second > 2048) return {1, 5};
    return {shape.first == kManyRows ? 1 : kManyRows};
  }
  if (generator.starts_with("wide_") || generator.starts_with("half_") || generator == "big_x") return {5};
  if (generator == "noise")
    return first ? std::vector<int64_t>{1, 2, 3, 4, 5, 8, 16, 17} : std::vector<int64_t>{1, 7};
  if (generator == "rows") return {6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 20, 22, 23, 31, 33};
  if (generator == "columns") return {1, 7};
  return {1, 5};
}

std::vector<int64_t> batches_to_quantize(std::string_view generator, const std::vector<int64_t>& of_linear) {
  if (generator == "rows") return {1, 2, 17};
  const bool own = generator == "tiles" || generator == "given_scales" || generator == "long";
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
  std::string_view layout;
  std::string_view activation;
  InputSet set;
  GeneratorSupport& support;
};

bool has_rows_of_x(Op op) { return op == Op::linear || op == Op::quantize_activation; }

// bfloat16, or what a scheme takes that takes none. The widest for tiles: bfloat16 hides what long sums lose.
DType first_dtype(const InputFamily& family, const Request& request) {
  if (family.generator.starts_with("half_")) return DType::float16;
  constexpr DType kNarrow[] = {DType::bfloat16, DType::float32, DType::float16},
                  kWide[] = {DType::float32, DType::bfloat16, DType::float16};
  // In bfloat16 the order of a sum hardly shows.
  const bool wide =
      family.generator == "tiles" || (family.generator == "rows" && request.kind == Kind::determinism);
  for (const DType dtype : wide ? kWide : kNarrow)
    for (const auto& [n, k] : shapes(request.scheme, request.layout))
      if (!request.scheme.refusal({dtype, n, k}) && !request.scheme.refusal({dtype, n, k}, request.layout))
        return dtype;
  return DType::bfloat16;
}

// Other dtypes and narrow families: the first shapes that the scheme takes.
size_t most_shapes(const InputFamily& family, const Request& request, DType dtype) {
  if (request.set == InputSet::few) return 1;
  return family.every_shape && dtype == DType::bfloat16 && request.activation == kWeightOnly
             ? 99
             : family.most_shapes;
}

void add_family(const InputFamily& family, const Request& request, std::vector<Synthetic>& out) {
  std::vector<DType> dtypes = {DType::bfloat16, DType::float32, DType::float16};
  if (!family.every_dtype || request.set != InputSet::all) dtypes = {first_dtype(family, request)};
  for (const DType dtype : dtypes) {
    size_t taken = 0;
    const bool weight_only = request.activation == kWeightOnly;
    const bool gives_scale = family.generator == "given_scales";
    const size_t most = most_shapes(family, request, dtype);
    for (const auto& [n, k] :
         shapes_of_family(family, request.kind, request.scheme, request.layout, request.set)) {
      const WeightShape weight{dtype, n, k};
      // A single product rounded to bfloat16 hides a step of its code.
      if (request.op == Op::linear && k == 1) continue;
      // x knows no columns.
      if (request.op == Op::quantize_activation && n > 256) continue;
      if (taken == most || request.scheme.refusal(weight) || request.scheme.refusal(weight, request.layout) ||
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
        Synthetic input{std::string(family.generator), weight, m, 0, std::string(request.activation)};
        input.seed = name_hash(input_name(input, request.op, request.layout));
        out.push_back(std::move(input));
      }
    }
  }
}

bool asks_about_schedules(std::string_view generator) {
  return generator == "noise" || generator == "panels" || generator == "rows";
}

}  // namespace

bool GeneratorSupport::has(Op op, std::string_view generator, const WeightShape& shape) {
  // Of the families, those that noise makes; a row of zeros has no codes there.
  if (is_sparse(*scheme_, shape))
    return generator == "noise" || generator == "all_codes" || generator == "one_hot" ||
           generator == "last_k" || generator == "large" || generator == "not_sparse" ||
           generator == "panels" || generator == "long" || generator == "rows" || generator == "columns";
  if (generator == "not_sparse") return false;
  if (op == Op::linear && !remembered(finite_, shape, has_finite_weights)) return false;
  if (generator == "outliers") return remembered(outliers_, shape, has_outliers);
  if (generator != "exact_sums" && !is_relation(generator)) return carries(*scheme_, generator, shape);
  if (!remembered(exact_, shape, has_exact_sums)) return false;
  if (generator == "exact_sums") return true;
  const auto [at, is_new] = relations_.try_emplace({std::string(generator), shape.dtype, shape.k}, false);
  if (is_new) at->second = has_relation(*scheme_, generator, shape);
  return at->second;
}

bool GeneratorSupport::remembered(Answers& answers, const WeightShape& shape,
                                  bool (*ask)(const Scheme&, const WeightShape&)) {
  // A long row asks nothing more than a few of its groups, and the same tail.
  constexpr int64_t kEnough = 512;
  const int64_t group = std::max<int64_t>(scheme_->group(), 1), unit = group * ((kEnough + group - 1) / group);
  WeightShape row = shape;
  if (row.k > 2 * unit) row.k = unit + row.k % unit;
  const auto [at, is_new] = answers.try_emplace({row.dtype, row.k}, false);
  if (is_new) at->second = ask(*scheme_, row);
  return at->second;
}

std::span<const InputFamily> input_families() { return families(); }

const InputFamily* find_input_family(std::string_view generator) {
  for (const InputFamily& family : families())
    if (family.generator == generator) return &family;
  return nullptr;
}

std::vector<Synthetic> synthetic_inputs(Kind kind, Op op, const Scheme& scheme,
                                        std::string_view layout, InputSet set, GeneratorSupport* known) {
  std::vector<Synthetic> out;
  GeneratorSupport own(scheme);
  GeneratorSupport& support = known == nullptr ? own : *known;
  for (const InputFamily& family : families()) {
    if (std::find(family.ops.begin(), family.ops.end(), op) == family.ops.end()) continue;
    if (set == InputSet::few && family.is_apart) continue;
    // Determinism does not ask about values.
    if (kind == Kind::determinism && !asks_about_schedules(family.generator)) continue;
    const InputSet request_set = kind == Kind::determinism && op != Op::linear ? InputSet::few : set;
    for (const ActivationInfo& policy : scheme.activations()) {
      const bool weight_only = policy.name == kWeightOnly;
      if (weight_only ? op == Op::quantize_activation : !has_rows_of_x(op)) continue;
      if (weight_only ? family.generator != "hard_x" : suits_policy(family.generator))
        add_family(family, {kind, op, scheme, layout, policy.name, request_set, support}, out);
    }
  }
  return out;
}

std::string input_name(const Synthetic& input, Op op, std::string_view layout) {
  std::string name = input.generator;
  if (layout != "plain" && !layout.empty()) name += "_" + std::string(layout);
  if (input.activation != kWeightOnly) name += "_" + input.activation;
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
