// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/coded_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr double kLargestHalf = 65504;  // float16

// Collects the values that break one rule.
class CodedFinding {
 public:
  CodedFinding(CodedFault::Kind kind, std::string_view expected)
      : fault_{.kind = kind, .expected = expected} {}

  void look_at(int64_t index, double value, bool fits) {
    if (!fits && fault_.count++ == 0) fault_.first = index, fault_.value = value;
    ++fault_.total;
  }
  void add_to(std::vector<CodedFault>& faults) const {
    if (fault_.count > 0) faults.push_back(fault_);
  }

 private:
  CodedFault fault_;
};

uint64_t word_of(std::span<const std::byte> bytes, int bits, int64_t index) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + index * bits / 8, static_cast<size_t>(bits) / 8);
  return word;
}

// Counts the words of a line that have a bit above their codes, or above the last code of the line.
void find_idle_bits(const CodeMatrix& matrix, std::vector<CodedFault>& faults) {
  // bitsandbytes fills the last half byte with the code of 0.
  if (matrix.packing == CodePacking::awq || matrix.packing == CodePacking::high_first) return;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(matrix.words, scratch);
  const int64_t per_word = matrix.packing == CodePacking::padded ? matrix.word_bits / matrix.bits : 0;
  CodedFinding found(CodedFault::Kind::idle_bits, "idle bits are 0");
  for (int64_t line = 0; line < matrix.lines; ++line)
    for (int64_t word = 0; word < matrix.line_words(); ++word) {
      const int64_t used =
          per_word
              ? std::min(per_word, matrix.length - word * per_word) * matrix.bits
              : std::min<int64_t>(matrix.word_bits, matrix.length * matrix.bits - word * matrix.word_bits);
      const int64_t at = line * matrix.line_stride + word * matrix.word_stride;
      found.look_at(at, 0, used >= matrix.word_bits || word_of(bytes, matrix.word_bits, at) >> used == 0);
    }
  found.add_to(faults);
}

void find_zero_points(const CodeMatrix& zeros, std::vector<CodedFault>& faults) {
  if (!zeros.range) return;
  CodedFinding found(CodedFault::Kind::zero_point, "zero points are in the range of the codes");
  int64_t index = 0;
  for (const int64_t field : fields_of(zeros)) {
    const bool negative = zeros.kind == CodeKind::signed_integer && field >> (zeros.bits - 1) != 0;
    const auto value = static_cast<double>(negative ? field - (int64_t{1} << zeros.bits) : field);
    const bool fits = value >= static_cast<double>(zeros.range->least) &&
                      value <= static_cast<double>(zeros.range->greatest);
    found.look_at(index++, value, fits);
  }
  found.add_to(faults);
}

// Half of the distance from the least to the greatest value of a code.
double half_span(const CodeMatrix& codes) {
  if (codes.range)
    return (static_cast<double>(codes.range->greatest) - static_cast<double>(codes.range->least)) / 2;
  switch (codes.kind) {
    case CodeKind::unsigned_integer:
    case CodeKind::offset_integer:
    case CodeKind::signed_integer:
      return (std::ldexp(1, codes.bits) - 1) / 2;
    case CodeKind::float8_e4m3:
      return 448;
    case CodeKind::float6_e2m3:
      return 7.5;
    case CodeKind::float4_e2m1:
      return 6;
    case CodeKind::table:
      break;
  }
  float largest = 0;
  for (const float value : codes.table) largest = std::max(largest, std::abs(value));
  return static_cast<double>(largest);
}

// A scale is the largest weight over half_span(), rounded: exponents may double it.
double largest_scale(const CodedWeight& weight) {
  if (weight.scales.any_size) return std::numeric_limits<double>::infinity();
  const double largest = weight.quantized_from == DType::float16
                             ? kLargestHalf
                             : static_cast<double>(std::numeric_limits<float>::max());
  const DType dtype = weight.scales.values.dtype;
  double rounding = 1.01;
  if (!weight.scales.nested) {
    if (dtype == DType::uint8 || dtype == DType::float8_e8m0fnu) rounding = 2;
    if (dtype == DType::float8_e4m3fn) rounding = 1.07;
  }
  return largest * rounding / (half_span(weight.codes) * static_cast<double>(weight.factor));
}

// The scales of the scales. Where one is 0, the scales are just the offset, and their codes are all equal.
void find_nested(const ScaleMatrix& scales, std::vector<CodedFault>& faults) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> codes = row_major_view(scales.values, scratch);
  const NestedScales& nested = *scales.nested;
  CodedFinding odd(CodedFault::Kind::scale, "values of nested_absmax are finite and not negative");
  CodedFinding lost(CodedFault::Kind::scale, "the bytes of absmax under a nested_absmax of 0 are all equal");
  for (size_t i = 0; i < nested.absmax.size(); ++i) {
    const float value = nested.absmax[i];
    odd.look_at(static_cast<int64_t>(i), static_cast<double>(value), std::isfinite(value) && value >= 0);
    const size_t first = i * static_cast<size_t>(nested.block);
    const auto block =
        codes.subspan(first, std::min(codes.size() - first, static_cast<size_t>(nested.block)));
    const bool alike = std::ranges::all_of(block, [&](std::byte code) { return code == block[0]; });
    lost.look_at(static_cast<int64_t>(i), 0, value != 0 || alike);
  }
  odd.add_to(faults);
  lost.add_to(faults);
}

// The lowest value of a scale. What rounding leaves of a nested scale of 0 may be negative: half of the
// largest step of its table, which is 0.0141.
double least_scale(const ScaleMatrix& scales, size_t index) {
  constexpr float kHalfStep = 0.0071F;
  if (scales.nested)
    return static_cast<double>(-kHalfStep *
                               scales.nested->absmax[index / static_cast<size_t>(scales.nested->block)]);
  return scales.any_sign ? -std::numeric_limits<double>::infinity() : 0;
}

// Returns false if a scale is not finite or has a sign that it cannot have.
bool find_scales(const CodedWeight& weight, const std::vector<float>& scales,
                 std::vector<CodedFault>& faults) {
  const size_t before = faults.size();
  if (weight.scales.nested) find_nested(weight.scales, faults);
  if (faults.size() != before) return false;
  const double most = largest_scale(weight);
  CodedFinding odd(CodedFault::Kind::scale,
                   weight.scales.any_sign ? "scales are finite" : "scales are finite and not negative");
  CodedFinding large(CodedFault::Kind::scale, "no finite weight has a scale as large as this");
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const auto value = static_cast<double>(scales[i]);
    const bool fits = std::isfinite(value) && value >= least_scale(weight.scales, i);
    odd.look_at(index, value, fits);
    large.look_at(index, value, !fits || std::abs(value) <= most);
  }
  odd.add_to(faults);
  large.add_to(faults);
  return faults.size() == before;
}

// Looks at every element. The codes under a scale of 0 are all alike, as a library writes them for zeros.
class ElementSearch {
 public:
  ElementSearch(const CodedWeight& weight, const std::vector<float>& scales)
      : weight_(weight), scales_(scales), groups_(groups_of_columns(weight)), under_zero_(scales.size()) {}

  void find(CodedValues& found) {
    CodedFinding nan(CodedFault::Kind::code, "no code is a NaN");
    CodedFinding range(CodedFault::Kind::code, "codes are in the range of their bits");
    const std::optional<CodeRange> allowed = weight_.codes.range;
    for_each_coded_row(weight_, [&](int64_t row, std::span<const CodedElement> elements) {
      const auto first = static_cast<size_t>(row / weight_.scales.row_block * weight_.scales.columns);
      for (size_t column = 0; column < elements.size(); ++column) {
        const CodedElement& element = elements[column];
        const int64_t index = row * weight_.columns + static_cast<int64_t>(column);
        const auto code = static_cast<double>(element.code);
        const bool of_zeros = weight_.scales.zeros_are_nan && element.scale == 0 && std::isnan(code);
        found.nan_of_zeros |= of_zeros;
        nan.look_at(index, code, !std::isnan(code) || of_zeros);
        if (allowed)
          range.look_at(index, code, element.code >= allowed->least && element.code <= allowed->greatest);
        if (element.scale == 0) note_code(first + groups_[column], element.code);
        const float value = value_of_element(weight_, element);  // smaller ones fit every dtype
        if (std::abs(value) > static_cast<float>(kLargestHalf) && std::isinf(round_to(weight_.dtype, value)))
          ++found.infinities;
      }
    });
    nan.add_to(found.faults);
    range.add_to(found.faults);
    find_lost_scales(found);
  }

 private:
  struct UnderZero {
    std::optional<float> code;
    bool others = false;
  };

  void note_code(size_t scale, float code) {
    UnderZero& seen = under_zero_[scale];
    const float first = seen.code.value_or(code);
    seen.others |= first != code && !(std::isnan(first) && std::isnan(code));
    seen.code = code;
  }

  void find_lost_scales(CodedValues& found) const {
    CodedFinding lost(CodedFault::Kind::scale, "the codes under a scale of 0 are all equal");
    const bool whole = weight_.scales.global && read_floats(*weight_.scales.global).at(0) == 0;
    for (size_t i = 0; i < under_zero_.size(); ++i) {
      const bool explained = weight_.scales.may_underflow && !whole;
      found.lost_scales += under_zero_[i].others && explained;
      lost.look_at(static_cast<int64_t>(i), static_cast<double>(scales_[i]),
                   !under_zero_[i].others || explained);
    }
    lost.add_to(found.faults);
  }

  const CodedWeight& weight_;
  const std::vector<float>& scales_;
  const std::vector<size_t> groups_;
  std::vector<UnderZero> under_zero_;
};

// A weight of zeros has 0 for its global scale, and 0 / 0 for its scales.
bool is_nan_of_zeros(const CodedWeight& weight, const std::vector<float>& scales) {
  if (!weight.scales.zeros_are_nan || !weight.scales.global || read_floats(*weight.scales.global).at(0) != 0)
    return false;
  const std::vector<int64_t> codes = fields_of(weight.codes);
  return std::ranges::all_of(scales, [](float scale) { return std::isnan(scale); }) &&
         std::ranges::all_of(codes, [&](int64_t code) { return code == codes[0]; });
}

}  // namespace

CodedValues coded_values(const CodedWeight& weight) {
  CodedValues found;
  const std::vector<float> scales = effective_scales(weight);
  found.nan_of_zeros = is_nan_of_zeros(weight, scales);
  if (found.nan_of_zeros) return found;
  const bool scales_fit = find_scales(weight, scales, found.faults);
  if (weight.biases) {
    CodedFinding biases(CodedFault::Kind::bias, "biases are finite");
    int64_t index = 0;
    for (const float value : read_floats(*weight.biases))
      biases.look_at(index++, static_cast<double>(value), std::isfinite(value));
    biases.add_to(found.faults);
  }
  find_idle_bits(weight.codes, found.faults);
  if (weight.zeros) {
    find_idle_bits(*weight.zeros, found.faults);
    find_zero_points(*weight.zeros, found.faults);
  }
  ElementSearch(weight, scales).find(found);
  if (!scales_fit) found.infinities = 0;  // the scales explain them
  return found;
}

}  // namespace qcts
