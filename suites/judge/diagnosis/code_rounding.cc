// SPDX-License-Identifier: BSD-3-Clause
// Codes that were rounded by another rule than to the nearest, ties to even.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/plane_hypotheses.h"

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

CodeValues code_values(const Scheme& scheme, const std::vector<Coded>& elements) {
  const std::optional<DType> element = scheme.params().element;
  CodeValues codes;
  if (element && is_float(*element)) {
    codes.sorted = scheme.codes().values;
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

std::vector<Coded> coded_elements(const KernelInput& input, const Planes& want, const Planes& got) {
  const std::vector<double> x = load_doubles(input.weight.dtype, input.x);
  const auto k = static_cast<size_t>(input.weight.k);
  std::vector<ExactWeight> wanted(k), is(k);
  const SchemeParams& params = input.scheme->params();
  const bool in_type = params.zero_point == ZeroPointKind::floating;
  const auto middle = static_cast<float>((params.code_max + 1) / 2);
  std::vector<Coded> all;
  for (int64_t row = 0; row < input.weight.n; ++row) {
    input.scheme->exact_row(want, input.weight, row, wanted);
    input.scheme->exact_row(got, input.weight, row, is);
    for (size_t c = 0; c < k; ++c) {
      const double value = x[static_cast<size_t>(row) * k + c];
      Coded one = in_type ? coded_in_type(input.weight.dtype, middle, value, wanted[c])
                          : coded_in_float32(value, wanted[c]);
      one.got = is[c].code;
      all.push_back(one);
    }
  }
  return all;
}

// A code that its rule did not choose freely: the range ends there, or the value is no number.
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
  // Half way in every arithmetic: a rule for ties has no choice here.
  if (between.low != between.high && one.quotient == middle && one.reciprocal == middle) return gives(middle);
  return gives(one.exact) || gives(one.exact * (1 + kStep)) || gives(one.exact * (1 - kStep));
}

double nearest_even(const CodeValues& codes, double value, double want) {
  const Bracket b = bracket_of(codes, value);
  const double even = std::fmod(b.low, 2) == 0 ? b.low : b.high;
  return nearest_or(b, value, codes.sorted.empty() ? even : want);
}

}  // namespace

std::optional<AnswerExplanation> explain_code_rounding(const KernelInput& input, const Planes& want,
                                                       const Planes& got) {
  if (input.op != Op::quantize || want.empty() || got.size() != want.size()) return std::nullopt;
  for (size_t i = 0; i < want.size(); ++i)
    if (want[i].name != got[i].name || (want[i].name != "qdata" && first_difference(want[i], got[i])))
      return std::nullopt;
  const std::vector<Coded> all = coded_elements(input, want, got);
  const CodeValues codes = code_values(*input.scheme, all);
  uint64_t wrong = 0;
  std::set<double> distinct;
  for (const Coded& one : all)
    if (!is_same_code(one.want, one.got)) {
      ++wrong;
      distinct.insert(one.value);
    }
  if (distinct.size() < kLeastDistinct) return std::nullopt;
  std::vector<std::string> names;
  for (const Rule& rule : kRules)
    if (std::ranges::all_of(all, [&](const Coded& one) { return is_chosen(rule, one, codes); }))
      names.emplace_back(rule.name);
  const auto add_if = [&](const char* name, auto code_of) {
    if (std::ranges::all_of(all, [&](const Coded& one) {
          return is_clamped(one, codes) ? is_same_code(one.want, one.got) : code_of(one) == one.got;
        }))
      names.emplace_back(name);
  };
  add_if("multiplied by the reciprocal of the scale instead of divided",
         [&](const Coded& one) { return nearest_even(codes, one.reciprocal, one.want); });
  add_if("divided by the scale instead of multiplied by its reciprocal",
         [&](const Coded& one) { return nearest_even(codes, one.quotient, one.want); });
  if (names.empty()) return std::nullopt;
  return AnswerExplanation{names[0], names.size() > 1 ? names[1] : "", wrong, ""};
}

}  // namespace qcts
