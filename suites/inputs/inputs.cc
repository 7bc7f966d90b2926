// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/inputs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "suites/inputs/drawn.h"
#include "suites/inputs/generate_parts.h"
#include "suites/inputs/generate_related.h"
#include "suites/inputs/generate_special.h"
#include "suites/inputs/generate_zero_codes.h"
#include "suites/inputs/input_families.h"
#include "suites/inputs/input_shapes.h"

namespace qcts {
namespace {

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
    case Generator::swamped:
    case Generator::zero_codes:
    case Generator::odd_scales:
    case Generator::wide_sums:
    case Generator::tiny_sums:
    case Generator::subnormal_x:
      return false;
    default:
      return !is_relation(generator);
  }
}

// Does the input test a length, whatever the values? It is large, so one policy that quantizes x has it.
bool is_of_size(Generator generator) {
  return generator == Generator::deep || generator == Generator::deeper || generator == Generator::tall ||
         generator == Generator::models;
}

// True for weight_only and for the first policy that quantizes x as it is, not scaled before.
bool is_first_of_its_kind(const Scheme& scheme, Policy policy) {
  for (const Policy other : scheme.activations())
    if (other != kWeightOnly && !other.name().starts_with("pre_"))
      return policy == kWeightOnly || policy == other;
  return true;
}

bool has_rows_of_x(Op op) { return op == Op::linear || op == Op::quantize_activation; }

// Does the operation have inputs of the family under the policy?
bool suits(Generator generator, Op op, const Scheme& scheme, Policy policy) {
  // A row of x is quantized as a whole, by each policy in its way.
  const bool is_whole_row = generator == Generator::deeper && op == Op::quantize_activation;
  if (is_of_size(generator) && !is_whole_row && !is_first_of_its_kind(scheme, policy)) return false;
  if (generator == Generator::end_pairs) return false;  // synthetic_inputs() adds them after the others
  if (policy == kWeightOnly) return op != Op::quantize_activation && generator != Generator::hard_x;
  return has_rows_of_x(op) && suits_policy(generator);
}

// Every number of rows on one shape, and on the others few enough for 2^26 products.
std::vector<int64_t> model_batches(const Shape& shape, bool first) {
  if (first) return {1, 2, 4, 32, 33, 64, 128};
  return {1, shape.first * shape.second > int64_t{1} << 20 ? 4 : 33};
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
  if (generator == Generator::swamped) return {1, 8, 24};  // 8: every power and place once
  if ((generator == Generator::tiles || generator == Generator::panels) && shape.first == kDecodeColumns)
    return {1};
  if (generator == Generator::tiles) return {shape.first > 256 || shape.second > 2048 ? 2 : 37};
  if (generator == Generator::panels) return {67};
  if (generator == Generator::long_rows) {
    if (shape.second > 2048) return {1, 5};
    return {shape.first == kManyRows ? 1 : kManyRows};
  }
  if (generator == Generator::deep || generator == Generator::deeper) return {1, 3};
  if (generator == Generator::batches) return {0, 256, 512, 1025};
  if (generator == Generator::tall) return {shape.first == kManyRows ? 1 : kManyRows};
  if (generator == Generator::many_rows) return {shape.first >= kManyRows ? 1 : kManyRows};
  if (generator == Generator::zero_codes) return {1, 6};
  if (generator == Generator::wide_sums) return {17, 33};
  if (generator == Generator::tiny_sums || generator == Generator::subnormal_x) return {5};
  if (generator == Generator::end_pairs) return {1, 9};
  if (generator == Generator::ranges) return {2 * kRanges};
  if (generator == Generator::odd_scales) return {1, 9, 14};
  if (generator == Generator::models) return model_batches(shape, first);
  if (is_wide(generator) || is_half(generator) || generator == Generator::big_x) return {5};
  if (generator == Generator::noise)
    return first ? std::vector<int64_t>{1, 2, 3, 4, 5, 8, 16, 17} : std::vector<int64_t>{1, 7};
  if (generator == Generator::rows) return {6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 20, 22, 23, 31, 33};
  if (generator == Generator::columns) return {1, 7};
  if (generator == Generator::squares || generator == Generator::group_squares) return {shape.first};
  return {1, 5};
}

std::vector<int64_t> batches_to_quantize(Generator generator, const std::vector<int64_t>& of_linear) {
  if (generator == Generator::rows) return {1, 2, 17};
  const bool own = generator == Generator::tiles || generator == Generator::given_scales ||
                   generator == Generator::long_rows || generator == Generator::batches ||
                   generator == Generator::tall || generator == Generator::many_rows ||
                   generator == Generator::squares || generator == Generator::ranges;
  return own ? of_linear : std::vector<int64_t>{5};
}

struct Request {
  Kind kind;
  Op op;
  const Scheme& scheme;
  Layout layout;
  Policy activation;
  InputSet set;
  GeneratorSupport& support;
  uint64_t draw_seed = 0;
};

// Tall inputs have many rows of x where x is quantized, and of the weight elsewhere.
bool has_many_rows_of_weight(const Request& request) {
  return request.op != Op::quantize_activation && request.activation == kWeightOnly;
}

// A linear has the same shapes in every layout: the ends of rows and columns that a layout pads count.
Layout layout_of_shapes(const Request& request) { return request.op == Op::linear ? kPlain : request.layout; }

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
    for (const auto& [n, k] : shapes(request.scheme, layout_of_shapes(request)))
      if (!request.scheme.refusal({dtype, n, k}) && !request.scheme.refusal({dtype, n, k}, request.layout))
        return dtype;
  return DType::bfloat16;
}

DType tall_dtype(const Request& request) { return first_dtype(input_family(Generator::tall), request); }

// Other dtypes and narrow families use the first shapes that the scheme accepts.
size_t max_shapes(const InputFamily& family, const Request& request, DType dtype) {
  if (request.set == InputSet::few) return 1;
  return family.every_shape && dtype == DType::bfloat16 && request.activation == kWeightOnly
             ? 99
             : family.max_shapes;
}

// Is this an input of many rows that neither `tall` nor `long` has?
bool adds_many_rows(const Request& request, const WeightShape& weight) {
  constexpr int64_t kMostProducts = int64_t{1} << 25;
  const bool is_tall = weight.n >= kManyRows, has_x = has_rows_of_x(request.op);
  if (!is_tall && (!has_x || (request.op == Op::linear && weight.n * weight.k * kManyRows > kMostProducts)))
    return false;
  const bool is_usual = weight.n == kManyRows || !is_tall;
  if (is_usual && request.scheme.group() <= kShortGroup) return false;
  const bool of_tall = is_first_of_its_kind(request.scheme, request.activation) && is_usual &&
                       is_tall == has_many_rows_of_weight(request) &&
                       (weight.dtype == tall_dtype(request) || request.op == Op::dequantize);
  return !of_tall;
}

// Does the operation have this input of the family?
bool is_asked(const InputFamily& family, const Request& request, const WeightShape& weight) {
  // A single product rounded to bfloat16 hides a step of its code.
  if (request.op == Op::linear && weight.k == 1) return false;
  if (family.generator == Generator::tall && (weight.n == kManyRows) != has_many_rows_of_weight(request))
    return false;
  if (family.generator == Generator::many_rows && !adds_many_rows(request, weight)) return false;
  // More columns cost a linear too much.
  if (request.op == Op::linear && family.generator == Generator::deeper && weight.n > 8) return false;
  // n does not matter for x.
  if (request.op == Op::quantize_activation && weight.n > 256) return false;
  return !request.scheme.refusal(weight) && !request.scheme.refusal(weight, request.layout) &&
         request.support.has(request.op, family.generator, weight) &&
         (family.generator != Generator::given_scales ||
          has_given_scale(request.scheme, weight, request.activation));
}

std::vector<int64_t> batches_of(const InputFamily& family, const Request& request, const WeightShape& weight,
                                bool is_first) {
  std::vector<int64_t> batches = {1};
  if (has_rows_of_x(request.op))
    batches = batch_sizes(request.kind, request.op, family.generator, {weight.n, weight.k},
                          is_first && request.activation == kWeightOnly);
  if (request.op == Op::quantize_activation) batches = batches_to_quantize(family.generator, batches);
  // The number of rows matters in one dtype and policy, but whether there are any in each.
  if (family.generator == Generator::batches && (weight.dtype != first_dtype(family, request) ||
                                                 !is_first_of_its_kind(request.scheme, request.activation)))
    batches = {0};
  if (request.set == InputSet::few) batches = {batches.back()};
  return batches;
}

// Adds the inputs of the first `most` shapes that the scheme accepts.
void add_in_dtype(const InputFamily& family, const Request& request, DType dtype, size_t most, bool is_other,
                  std::vector<Synthetic>& out) {
  size_t taken = 0;
  for (const auto& [n, k] :
       shapes_of_family(family, request.kind, request.scheme, layout_of_shapes(request), request.set)) {
    const WeightShape weight{dtype, n, k};
    if (taken == most || !is_asked(family, request, weight)) continue;
    for (const int64_t m : batches_of(family, request, weight, taken == 0)) {
      Synthetic input{family.generator, weight, m, 0, request.activation};
      input.is_other_dtype = is_other;
      input.seed = name_hash(input_name(input, request.op, request.layout));
      out.push_back(std::move(input));
    }
    ++taken;
  }
}

void add_family(const InputFamily& family, const Request& request, std::vector<Synthetic>& out) {
  std::vector<DType> dtypes = {DType::bfloat16, DType::float32, DType::float16};
  // A kernel may dequantize to only one dtype, and tall weights cost little there.
  const bool every_dtype =
      family.every_dtype || (family.generator == Generator::tall && request.op == Op::dequantize);
  if (!every_dtype || request.set != InputSet::all) dtypes = {first_dtype(family, request)};
  for (const DType dtype : dtypes)
    add_in_dtype(family, request, dtype, max_shapes(family, request, dtype), false, out);
}

// Adds one shape in each dtype that the family leaves out, for kernels that lack its first one. The bound of
// a sum hides a step of a weight that is a float16 or float32 itself.
void add_other_dtypes(const InputFamily& family, const Request& request, std::vector<Synthetic>& out) {
  if (!request.scheme.quantizes_weight()) return;
  const DType first = first_dtype(family, request);
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
    if (dtype != first) add_in_dtype(family, request, dtype, 1, true, out);
}

void add_drawn(const Request& request, std::vector<Synthetic>& out) {
  for (Synthetic& input :
       drawn_inputs(request.op, request.scheme, request.layout, request.activation, request.draw_seed))
    if (request.support.has(request.op, Generator::drawn, input.weight)) out.push_back(std::move(input));
}

// Linear had `deeper` before the other operations.
bool asks_last(Generator generator, Op op) {
  return generator >= Generator::ranges || (generator == Generator::deeper && op != Op::linear);
}

bool asks_about_schedules(Generator generator) {
  return generator == Generator::noise || generator == Generator::panels || generator == Generator::rows;
}

}  // namespace

bool GeneratorSupport::has(Op op, Generator generator, const WeightShape& shape) {
  // Sparse schemes support the generators based on noise; a row of zeros has no codes there. What quantizes x
  // reads no weight.
  if (is_sparse(*scheme_, shape) && op != Op::quantize_activation)
    return generator == Generator::noise || generator == Generator::all_codes ||
           generator == Generator::one_hot || generator == Generator::last_k ||
           generator == Generator::large || generator == Generator::larger ||
           generator == Generator::not_sparse || generator == Generator::panels ||
           generator == Generator::long_rows || generator == Generator::rows ||
           generator == Generator::columns || generator == Generator::deep ||
           generator == Generator::batches || generator == Generator::tall ||
           generator == Generator::models || generator == Generator::drawn ||
           generator == Generator::deeper || generator == Generator::blocks ||
           generator == Generator::many_rows || generator == Generator::squares;
  if (generator == Generator::not_sparse) return false;
  if (op == Op::linear && !remembered(finite_, shape, has_finite_weights)) return false;
  if (generator == Generator::outliers || generator == Generator::swamped)
    return remembered(outliers_, shape, has_outliers);
  if (generator == Generator::zero_codes) return remembered(zero_codes_, shape, has_zero_codes);
  const bool is_tied = generator == Generator::tied_sums, is_wide_sum = generator == Generator::wide_sums;
  if (generator != Generator::exact_sums && !is_tied && !is_wide_sum && !is_relation(generator))
    return carries(*scheme_, generator, shape);
  if (is_tied && shape.dtype == DType::float32) return false;
  if (!remembered(exact_, shape, has_exact_sums)) return false;
  if (generator == Generator::exact_sums || is_tied || is_wide_sum) return true;
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

std::vector<Synthetic> synthetic_inputs(Kind kind, Op op, const Scheme& scheme, Layout layout, InputSet set,
                                        GeneratorSupport* known, uint64_t draw_seed) {
  std::vector<Synthetic> out, last, late, latest;
  GeneratorSupport own(scheme);
  GeneratorSupport& support = known == nullptr ? own : *known;
  const bool of_values = kind == Kind::numerics && set == InputSet::all;
  for (const InputFamily& family : input_families()) {
    if (std::find(family.ops.begin(), family.ops.end(), op) == family.ops.end()) continue;
    if (set == InputSet::few && family.excluded_from_sampling) continue;
    if (op == Op::linear && layout != kPlain && !family.of_packed_linear) continue;
    // Determinism does not depend on values.
    if (kind == Kind::determinism && !asks_about_schedules(family.generator)) continue;
    const InputSet request_set = kind == Kind::determinism && op != Op::linear ? InputSet::few : set;
    for (const Policy policy : scheme.activations()) {
      if (!suits(family.generator, op, scheme, policy)) continue;
      const Request request{kind, op, scheme, layout, policy, request_set, support, draw_seed};
      if (family.generator == Generator::drawn)
        add_drawn(request, last);
      else
        add_family(family, request,
                   asks_last(family.generator, op)         ? latest
                   : family.generator >= Generator::deeper ? late
                   : family.generator >= Generator::models ? last
                                                           : out);
      const bool repeats =
          kind == Kind::determinism && family.generator == Generator::noise && request_set == InputSet::few;
      if (repeats || (of_values && family.is_asked_in_each_dtype))
        add_other_dtypes(family, request, asks_last(family.generator, op) ? latest : last);
    }
  }
  if (of_values && op == Op::linear && layout == kPlain)
    for (const Policy policy : scheme.activations()) {
      if (policy == kWeightOnly) continue;
      const Request request{kind, op, scheme, layout, policy, set, support};
      add_family(input_family(Generator::zero_points), request, out);
      add_family(input_family(Generator::one_sign), request, last);
      add_other_dtypes(input_family(Generator::one_sign), request, last);
      if (!has_end_pairs(scheme, policy)) continue;
      add_family(input_family(Generator::end_pairs), request, last);
      add_other_dtypes(input_family(Generator::end_pairs), request, last);
    }
  // Sampling depends on the positions of the others.
  for (const auto* more : {&last, &late, &latest}) out.insert(out.end(), more->begin(), more->end());
  return out;
}

uint64_t name_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

bool is_sampled_alone(const Synthetic& input) {
  return input_family(input.generator).excluded_from_sampling || input.is_other_dtype ||
         (input.generator == Generator::zero_points && input.activation != kWeightOnly);
}

std::string input_name(const Synthetic& input, Op op, Layout layout) {
  std::string name(generator_name(input.generator));
  if (layout != kPlain) name += "_" + std::string(layout.name());
  if (input.activation != kWeightOnly) name += "_" + std::string(input.activation.name());
  if (input.draw) return name + (input.draw->index < 10 ? "_0" : "_") + std::to_string(input.draw->index);
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
