// SPDX-License-Identifier: BSD-3-Clause
// Codes that were rounded by another rule than to the nearest, ties to even.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/plane_hypotheses.h"
#include "suites/judge/diagnosis/plane_values.h"

namespace qcts {
namespace {

// Recipes without a floating zero divide, or multiply by a reciprocal, in float32.
constexpr double kStep = 0x1p-22;

// A value in units of its scale, and its codes.
struct Coded {
  double value = 0;
  double exact = 0;  // the quotient before any rounding
  double want = 0, got = 0;
  float reciprocal = 0, quotient = 0;  // as float32 gives it by a product and by a division
};

// The codes just below and above a value.
struct Bracket {
  double low = 0, high = 0;
};
// The values of the codes in order, or the range of the integers that occur.
struct CodeValues {
  std::vector<double> sorted;
  double least = -HUGE_VAL, greatest = HUGE_VAL;  // of integers
};
Bracket bracket_of(const CodeValues& codes, double value) {
  const std::vector<double>& sorted = codes.sorted;
  if (sorted.empty())
    return {std::clamp(std::floor(value), codes.least, codes.greatest),
            std::clamp(std::ceil(value), codes.least, codes.greatest)};
  const auto above = std::ranges::lower_bound(sorted, value);
  if (above == sorted.end()) return {sorted.back(), sorted.back()};
  if (*above == value || above == sorted.begin()) return {*above, *above};
  return {*(above - 1), *above};
}

using Choose = double (*)(const Bracket& between, double value);

double smaller(const Bracket& b) { return std::fabs(b.low) < std::fabs(b.high) ? b.low : b.high; }
double larger(const Bracket& b) { return std::fabs(b.low) < std::fabs(b.high) ? b.high : b.low; }
double nearest_or(const Bracket& b, double value, double tie) {
  const double below = value - b.low, above = b.high - value;
  return below == above ? tie : below < above ? b.low : b.high;
}

struct Rule {
  const char* name;
  Choose choose;
};
constexpr Rule kRules[] = {
    {"ties rounded away from zero", [](const Bracket& b, double v) { return nearest_or(b, v, larger(b)); }},
    {"ties rounded up", [](const Bracket& b, double v) { return nearest_or(b, v, b.high); }},
    {"ties rounded toward zero", [](const Bracket& b, double v) { return nearest_or(b, v, smaller(b)); }},
    {"ties rounded down", [](const Bracket& b, double v) { return nearest_or(b, v, b.low); }},
    {"codes rounded toward zero", [](const Bracket& b, double) { return smaller(b); }},
    {"codes rounded down", [](const Bracket& b, double) { return b.low; }},
    {"codes rounded up", [](const Bracket& b, double) { return b.high; }},
    {"codes rounded away from zero", [](const Bracket& b, double) { return larger(b); }},
};

bool is_same_code(double a, double b) { return a == b && std::signbit(a) == std::signbit(b); }

CodeValues code_values(std::optional<DType> element, const std::vector<Coded>& elements) {
  CodeValues codes;
  if (element && is_float(*element)) {
    codes.sorted = float_codes(*element).values;
    std::erase_if(codes.sorted, [](double value) { return !std::isfinite(value); });
    std::ranges::sort(codes.sorted);
    codes.sorted.erase(std::unique(codes.sorted.begin(), codes.sorted.end()), codes.sorted.end());
    return codes;
  }
  codes.least = HUGE_VAL;
  codes.greatest = -HUGE_VAL;
  for (const Coded& one : elements) {
    codes.least = std::min({codes.least, one.want, one.got});
    codes.greatest = std::max({codes.greatest, one.want, one.got});
  }
  return codes;
}

Coded coded_in_float32(double x, const ExactWeight& want) {
  const double value = x - want.zero;
  const auto narrow = static_cast<float>(value), step = static_cast<float>(want.scale);
  return {value, value / want.scale, want.code, 0, narrow * (1 / step), narrow / step};
}

// Codes from the group's minimum on, every operation in the weight's type. `middle` is the code of zero.
Coded coded_in_type(DType dtype, float middle, double x, const ExactWeight& want) {
  const auto scale = static_cast<float>(want.scale), zero = static_cast<float>(want.zero);
  const float above = sub_in(dtype, static_cast<float>(x), sub_in(dtype, zero, mul_in(dtype, scale, middle)));
  const float quotient = div_in(dtype, above, scale);
  const float reciprocal = mul_in(dtype, above, div_in(dtype, 1, scale));
  return {x, static_cast<double>(quotient) - middle, want.code, 0, reciprocal - middle, quotient - middle};
}

// A matrix that is quantized, and a way to read its planes: as those of a weight, or as qdata with a scale
// for each row or for all rows.
struct Quantized {
  DType dtype = DType::float32;
  int64_t rows = 0, k = 0;
  std::optional<DType> element;  // type of a code
  std::function<void(const Planes&, int64_t row, std::span<ExactWeight>)> read_row;
};

// Reads row `row` of codes of 8 bits. `step` is the scale's place for a row: 1, or 0 for one scale.
void read_codes(const Planes& planes, int64_t row, size_t step, std::span<ExactWeight> out) {
  const Plane &qdata = *plane_named(planes, "qdata"), &scale = *plane_named(planes, "scale"),
              *zero = plane_named(planes, "zero_point");
  const size_t of_row = static_cast<size_t>(row) * step;
  const double middle = zero ? static_cast<double>(integer_at(*zero, of_row)) : 0;
  for (size_t c = 0; c < out.size(); ++c) {
    const size_t at = static_cast<size_t>(row) * out.size() + c;
    const double code = is_float(qdata.dtype) ? load_float(qdata.dtype, qdata.bytes, at)
                                              : static_cast<double>(integer_at(qdata, at));
    out[c].code = code - middle;
    out[c].scale = load_float(scale.dtype, scale.bytes, of_row);
  }
}

std::optional<Quantized> quantized_x(const KernelInput& input, const Planes& planes) {
  const WeightShape as_weight{input.x_dtype, input.m, input.weight.k};
  Quantized x{input.x_dtype, input.m, input.weight.k, input.scheme->params().element, {}};
  if (!input.scheme->refusal(as_weight) && have_specs(planes, input.scheme->plane_specs(as_weight))) {
    x.read_row = [as_weight, &scheme = *input.scheme](const Planes& all, int64_t row,
                                                      std::span<ExactWeight> out) {
      scheme.exact_row(all, as_weight, row, out);
    };
    return x;
  }
  const Plane *qdata = plane_named(planes, "qdata"), *scale = plane_named(planes, "scale");
  if (!qdata || !scale || dtype_bits(qdata->dtype) != 8 || !is_float(scale->dtype)) return std::nullopt;
  const size_t scales = scale->bytes.size() / dtype_bytes(scale->dtype);
  if (qdata->bytes.size() != static_cast<size_t>(x.rows * x.k)) return std::nullopt;
  if (scales != 1 && scales != static_cast<size_t>(input.m)) return std::nullopt;
  x.element = qdata->dtype;
  x.read_row = [step = static_cast<size_t>(scales > 1)](const Planes& all, int64_t row,
                                                        std::span<ExactWeight> out) {
    read_codes(all, row, step, out);
  };
  return x;
}

std::optional<Quantized> quantized(const KernelInput& input, const Planes& planes) {
  if (input.op == Op::quantize_activation) return quantized_x(input, planes);
  return Quantized{input.weight.dtype, input.weight.n, input.weight.k, input.scheme->params().element,
                   [&](const Planes& all, int64_t row, std::span<ExactWeight> out) {
                     input.scheme->exact_row(all, input.weight, row, out);
                   }};
}

std::vector<Coded> coded_elements(const KernelInput& input, const Quantized& quantized, const Planes& want,
                                  const Planes& got) {
  const std::vector<double> x = load_doubles(quantized.dtype, input.x);
  const auto k = static_cast<size_t>(quantized.k);
  std::vector<ExactWeight> wanted(k), is(k);
  const SchemeParams& params = input.scheme->params();
  const bool in_type = input.op == Op::quantize && params.zero_point == ZeroPointKind::floating;
  const auto middle = static_cast<float>((params.code_max + 1) / 2);
  std::vector<Coded> all;
  for (int64_t row = 0; row < quantized.rows; ++row) {
    quantized.read_row(want, row, wanted);
    quantized.read_row(got, row, is);
    for (size_t c = 0; c < k; ++c) {
      const double value = x[static_cast<size_t>(row) * k + c];
      Coded one = in_type ? coded_in_type(quantized.dtype, middle, value, wanted[c])
                          : coded_in_float32(value, wanted[c]);
      one.got = is[c].code;
      all.push_back(one);
    }
  }
  return all;
}

// A code that its rule did not choose freely: the range ends there, or the value is not a number.
bool is_clamped(const Coded& one, const CodeValues& codes) {
  if (!std::isfinite(one.exact) || !std::isfinite(one.want)) return true;
  const Bracket between = bracket_of(codes, one.exact * (1 + kStep)),
                other = bracket_of(codes, one.exact * (1 - kStep));
  return one.want < std::min(between.low, other.low) || one.want > std::max(between.high, other.high);
}

bool is_chosen(const Rule& rule, const Coded& one, const CodeValues& codes) {
  const auto gives = [&](double value) { return rule.choose(bracket_of(codes, value), value) == one.got; };
  if (is_clamped(one, codes)) return is_same_code(one.want, one.got);
  const Bracket between = bracket_of(codes, one.quotient);
  const double middle = (between.low + between.high) / 2;
  // Halfway in every arithmetic: a rule for ties has no choice here.
  if (between.low != between.high && one.quotient == middle && one.reciprocal == middle) return gives(middle);
  return gives(one.exact) || gives(one.exact * (1 + kStep)) || gives(one.exact * (1 - kStep));
}

// Float codes in order are even and odd in turn, as their bits are; zero, in the middle, is even.
double even_of(const CodeValues& codes, const Bracket& b) {
  if (codes.sorted.empty()) return std::fmod(b.low, 2) == 0 ? b.low : b.high;
  const auto at = std::ranges::lower_bound(codes.sorted, b.low) - codes.sorted.begin();
  const auto zero = std::ranges::lower_bound(codes.sorted, 0.0) - codes.sorted.begin();
  return (at - zero) % 2 == 0 ? b.low : b.high;
}

double nearest_even(const CodeValues& codes, double value) {
  const Bracket b = bracket_of(codes, value);
  return nearest_or(b, value, even_of(codes, b));
}

// Names the mistakes that give every code, the wrong and the right ones.
std::vector<std::string> fitting_rules(const std::vector<Coded>& all, const CodeValues& codes) {
  std::vector<std::string> names;
  for (const Rule& rule : kRules)
    if (std::ranges::all_of(all, [&](const Coded& one) { return is_chosen(rule, one, codes); }))
      names.emplace_back(rule.name);
  const auto add_if = [&](std::string name, auto value_of) {
    if (std::ranges::all_of(all, [&](const Coded& one) {
          return is_clamped(one, codes) ? is_same_code(one.want, one.got)
                                        : nearest_even(codes, value_of(one)) == one.got;
        }))
      names.push_back(std::move(name));
  };
  add_if("multiplied by the reciprocal of the scale instead of divided",
         [](const Coded& one) { return one.reciprocal; });
  add_if("divided by the scale instead of multiplied by its reciprocal",
         [](const Coded& one) { return one.quotient; });
  for (const DType narrow : {DType::float16, DType::bfloat16})
    add_if("quotients by the scale rounded to " + std::string(dtype_name(narrow)) + " first",
           [narrow](const Coded& one) { return round_to(narrow, one.quotient); });
  return names;
}

}  // namespace

std::optional<AnswerExplanation> explain_code_rounding(const KernelInput& input, const Planes& want,
                                                       const Planes& got, const Distinct& distinct) {
  if (want.empty() || got.size() != want.size()) return std::nullopt;
  for (size_t i = 0; i < want.size(); ++i)
    if (want[i].name != got[i].name || (want[i].name != "qdata" && first_difference(want[i], got[i])))
      return std::nullopt;
  const std::optional<Quantized> planes = quantized(input, want);
  if (!planes) return std::nullopt;
  const std::vector<Coded> all = coded_elements(input, *planes, want, got);
  uint64_t wrong = 0;
  std::set<double> values;
  for (const Coded& one : all)
    if (!is_same_code(one.want, one.got)) {
      ++wrong;
      values.insert(one.value);
    }
  if (!distinct.allows(values.size())) return std::nullopt;
  const std::vector<std::string> names = fitting_rules(all, code_values(planes->element, all));
  if (names.empty()) return std::nullopt;
  return AnswerExplanation{names[0], names.size() > 1 ? names[1] : "", wrong, ""};
}

}  // namespace qcts
