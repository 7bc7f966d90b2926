// SPDX-License-Identifier: BSD-3-Clause
// Quantized tensors that no scheme describes. Their class says which values it takes: codes and zero points
// of AffineQuantizedTensor are in quant_min .. quant_max, float parts are finite, and scales not negative.
// What their recipe writes besides is not known here.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/dialects/blocks/blocks.h"
#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/coded_values.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/qtensor.h"
#include "reference/numerics/soft_float.h"
#include "reference/numerics/special_values.h"
#include "reference/values/collector.h"

namespace qcts {
namespace {

// Parts besides the weight: attributes of a Parameter, the mesh of a DTensor.
bool is_beside(std::string_view part) {
  return part.starts_with("state.") || part.starts_with("slots.") || part.starts_with("dtensor.");
}

bool is_wide_float(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

bool is_scale(std::string_view part) {
  const size_t dot = part.rfind('.');
  return part.find("scale", dot == part.npos ? 0 : dot) != part.npos;
}

// Classes whose recipes write NaN and infinities for finite weights: 0/0 in a block of equal weights, and the
// states of optimizers.
bool writes_nan(const NamedTensor& tensor) {
  return tensor.type == "GGUFQuantizedTensor" || tensor.type.starts_with("OptimState");
}

// quantization_factor and scaler_mean, as reference/schemes/nf4.cc derives them: 256 / (2 * the distance of
// the scalers from their mean), and a mean whose sum overflows.
bool writes_infinity(const NamedTensor& tensor) { return tensor.type == "NF4Tensor"; }

// Collects the values of one part that break its rule.
class PartFinding {
 public:
  PartFinding(ValueRule rule, const NamedTensor& named, std::string part, std::string expected)
      : finding_{.rule = rule,
                 .tensor = named.name,
                 .plane = std::move(part),
                 .expected = named.type + ": " + std::move(expected)} {}

  void look_at(double value, bool fits) {
    if (!fits && finding_.count++ == 0) {
      finding_.place = "element " + std::to_string(finding_.total);
      finding_.value = number_text(value);
    }
    ++finding_.total;
  }
  void add_to(std::vector<ValueFinding>& findings) const {
    if (finding_.count != 0) findings.push_back(finding_);
  }

 private:
  ValueFinding finding_;
};

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  return load_doubles(tensor.dtype, row_major_view(tensor, scratch));
}

}  // namespace

// The recipes of integer codes: torchao's choose_qparams_affine clamps the scale to at least eps, and the
// zero point to the range of the codes. A range that overflows gives an infinite scale and the least zero
// point.
void ValueCollector::add_affine(const NamedTensor& named) {
  const std::optional<std::string> prefix = affine_prefix(named);
  const std::optional<Affine> affine = prefix ? read_affine(named) : std::nullopt;
  if (!affine || affine->domain != ZeroPoints::integer) return;
  const Json low = attribute_at(named, *prefix + "quant_min"),
             high = attribute_at(named, *prefix + "quant_max");
  if (!low.is_number() || !high.is_number()) return;
  const double least = low.get<double>(), greatest = high.get<double>();
  const std::string range = number_text(least) + " .. " + number_text(greatest);
  PartFinding codes(ValueRule::code, named, "codes", "codes are in " + range);
  for (const double code : affine->codes) codes.look_at(code, code >= least && code <= greatest);
  codes.add_to(found_.findings);
  if (!affine->zero_point) return;
  PartFinding zero_points(ValueRule::zero_point, named, "zero_point", "zero points are in " + range);
  for (const double zero : numbers_of(*affine->zero_point))
    zero_points.look_at(zero, zero >= least && zero <= greatest);
  zero_points.add_to(found_.findings);
}

// torch refuses to dequantize zero points outside of the codes' range.
// torch's observers keep scales above an epsilon and divide the range of a weight by three codes at least.
// add_finite_part() looks for scales by channel that are not numbers.
void ValueCollector::add_qtensor(const NamedTensor& named) {
  if (!is_qtensor(named)) return;
  constexpr double kMost = 2.0 / 3 * static_cast<double>(std::numeric_limits<float>::max());
  PartFinding finding(ValueRule::scale, named, "scale", "scales are positive, and finite weights have them");
  if (const Json scale = attribute_at(named, "scale"); scale.is_number())
    finding.look_at(scale.get<double>(), scale.get<double>() > 0 && scale.get<double>() <= kMost);
  for (const InnerTensor& inner : named.payload)
    if (is_scale(inner.name))
      for (const double value : doubles_of(inner.tensor))
        finding.look_at(value, value != 0 && !(std::isfinite(value) && value > kMost));
  finding.add_to(found_.findings);
  const std::optional<ZeroPointRange> range = qtensor_zero_points(named);
  if (!range) return;
  PartFinding zeros(
      ValueRule::zero_point, named, "zero_point",
      "zero points are in " + number_text(range->least) + " .. " + number_text(range->greatest));
  for (const double zero : range->zero_points)
    zeros.look_at(zero, zero >= range->least && zero <= range->greatest);
  zeros.add_to(found_.findings);
}

void ValueCollector::add_finite_part(const NamedTensor& named, const InnerTensor& inner) {
  const bool scale = is_scale(inner.name);
  PartFinding part(scale ? ValueRule::scale : ValueRule::not_a_number, named, inner.name,
                   scale ? "scales are finite and not negative" : "parts are finite");
  for (const double value : doubles_of(inner.tensor))
    part.look_at(value, (std::isfinite(value) && !(scale && value < 0)) ||
                            (std::isinf(value) && writes_infinity(named)));
  part.add_to(found_.findings);
}

namespace {

// A scale of what the layer takes, which is stored next to the weight: input_scale, activation_scale.
bool is_of_x(std::string_view part) { return part.starts_with("input_") || part.starts_with("activation_"); }

}  // namespace

void ValueCollector::add_coded(const NamedTensor& named) {
  struct Rule {
    ValueRule rule;
    const char *plane, *place;
  };
  static constexpr Rule kRules[] = {{ValueRule::scale, "scale", "scale "},
                                    {ValueRule::not_a_number, "bias", "bias "},
                                    {ValueRule::idle_bits, "codes", "word "},
                                    {ValueRule::code, "codes", "code "},
                                    {ValueRule::zero_point, "zero_point", "zero point "}};
  const CodedValues values = coded_values(*named.coded);
  for (const CodedFault& fault : values.faults) {
    const Rule& rule = kRules[static_cast<size_t>(fault.kind)];
    found_.findings.push_back(
        {.rule = rule.rule,
         .tensor = named.name,
         .plane = rule.plane,
         .place = rule.place + std::to_string(fault.first),
         .value = rule.rule == ValueRule::idle_bits ? "bits above the codes" : number_text(fault.value),
         .expected = named.coded->scheme + ": " + std::string(fault.expected),
         .count = fault.count,
         .total = fault.total});
  }
  for (const InnerTensor& inner : named.payload)
    if (is_of_x(inner.name) && is_wide_float(inner.tensor.dtype)) add_finite_part(named, inner);
  if (values.lost_scales != 0)
    note("scales of 0 next to codes, as the recipe writes them for the smallest numbers", named.name,
         "tensors", values.lost_scales);
  if (values.nan_of_zeros)
    note("weights that dequantize to NaN, as the recipe writes them for zeros", named.name, "tensors", 1);
  if (values.infinities != 0)
    note("weights that dequantize to infinity, as the recipe writes them for the largest numbers", named.name,
         "tensors", values.infinities);
}

void ValueCollector::add_blocks(const NamedTensor& named) {
  struct Rule {
    ValueRule rule;
    const char* plane;
    const char* expected;
  };
  static constexpr Rule kRules[] = {{ValueRule::scale, "scale", "scales and minima are finite"},
                                    {ValueRule::code, "codes", "codes are 0, 1 and 2"},
                                    {ValueRule::idle_bits, "scale", "sign bits are 0"}};
  for (const BlockFault& fault : block_faults(*named.blocks, named.payload[0].tensor)) {
    const Rule& rule = kRules[static_cast<size_t>(fault.kind)];
    found_.findings.push_back({.rule = rule.rule,
                               .tensor = named.name,
                               .plane = rule.plane,
                               .place = "block " + std::to_string(fault.first),
                               .value = number_text(fault.value),
                               .expected = gguf_scheme_name(*named.blocks) + ": " + rule.expected,
                               .count = fault.count,
                               .total = fault.total});
  }
}

void ValueCollector::add_parts(const NamedTensor& named) {
  for (const InnerTensor& inner : named.payload) {
    const Tensor& tensor = inner.tensor;
    if (!tensor.storage || tensor.numel() == 0 || is_beside(inner.name)) continue;
    if (is_wide_float(tensor.dtype) && !writes_nan(named)) {
      add_finite_part(named, inner);
    } else if (has_special_values(tensor.dtype)) {
      std::vector<std::byte> scratch;
      const SpecialValues values = special_values(tensor.dtype, row_major_view(tensor, scratch));
      if (values.nans + values.infinities != 0)
        note("NaNs or infinities in the part " + inner.name + " of a " + named.type, named.name, "tensors",
             values.nans + values.infinities);
    }
  }
  add_affine(named);
  add_qtensor(named);
}

}  // namespace qcts
