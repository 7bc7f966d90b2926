// SPDX-License-Identifier: BSD-3-Clause
// One ratio or one difference between a wrong y and the right one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/answer_hypotheses.h"

namespace qcts {
namespace {

struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();

  bool holds(double value) const { return low <= value && value <= high; }
  void cut_to(const Range& other) {
    low = std::max(low, other.low);
    high = std::min(high, other.high);
  }
};

// The sums that a number of `dtype` may be rounded from.
Range before_rounding(DType dtype, double got) {
  const double magnitude = std::fabs(got), step = float_format(dtype).min_subnormal;
  const uint64_t bits = encode_float(dtype, magnitude);
  const double above = decode_float(dtype, bits + 1),
               below = bits == 0 ? -step : decode_float(dtype, bits - 1);
  const double high = std::isfinite(above) ? (magnitude + above) / 2 : magnitude + (magnitude - below) / 2;
  const double low = (magnitude + below) / 2;
  return std::signbit(got) ? Range{-high, -low} : Range{low, high};
}

// Returns the number with the fewest digits within the range, or its middle.
std::string shortest_within(const Range& range) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, (range.low + range.high) / 2);
    if (range.holds(std::strtod(text, nullptr))) break;
  }
  return text;
}

// y as the right answer times a ratio, or plus a difference.
class CommonChange {
 public:
  enum class Kind { ratio, difference };

  CommonChange(const SeenAnswer& seen, Kind kind, bool without_bias)
      : seen_(seen), kind_(kind), without_bias_(without_bias) {}

  // Returns the changes that all elements allow. The range is empty (low > high) if there are none.
  Range allowed(std::span<const size_t> elements) const {
    Range all;
    for (const size_t i : elements) {
      const double got = load_float(seen_.input.y_type(), seen_.got, i);
      if (!std::isfinite(got) || !std::isfinite(seen_.want[i].value)) continue;
      Range sum = before_rounding(seen_.input.y_type(), got);
      sum = {sum.low - kept(i), sum.high - kept(i)};
      const Range want = wanted(i);
      if (kind_ == Kind::difference)
        all.cut_to({sum.low - want.high, sum.high - want.low});
      else if (!want.holds(0))
        all.cut_to(quotients(sum, want));
      if (all.low > all.high) break;
    }
    return all;
  }

  Predicted predicted(size_t i, double change) const {
    const Bounded& bounded = seen_.want[i];
    if (!std::isfinite(bounded.value)) return {bounded.value, bounded.value};
    const Range want = wanted(i);
    const bool is_ratio = kind_ == Kind::ratio;
    const double one = (is_ratio ? want.low * change : want.low + change) + kept(i),
                 other = (is_ratio ? want.high * change : want.high + change) + kept(i);
    const DType dtype = seen_.input.y_type();
    return {round_to(dtype, std::min(one, other)), round_to(dtype, std::max(one, other))};
  }

 private:
  static Range quotients(const Range& of, const Range& by) {
    const auto [low, high] =
        std::minmax({of.low / by.low, of.low / by.high, of.high / by.low, of.high / by.high});
    return {low, high};
  }
  // The part of an element that does not change.
  double kept(size_t i) const {
    if (!without_bias_) return 0;
    return load_float(seen_.input.bias_dtype, seen_.input.bias,
                      i % static_cast<size_t>(seen_.input.weight.n));
  }
  Range wanted(size_t i) const {
    const Bounded& want = seen_.want[i];
    return {want.value - want.error - kept(i), want.value + want.error - kept(i)};
  }

  const SeenAnswer& seen_;
  const Kind kind_;
  const bool without_bias_;
};

}  // namespace

std::vector<AnswerHypothesis> answer_summaries(const SeenAnswer& seen, std::span<const size_t> elements) {
  std::vector<AnswerHypothesis> all;
  const auto add = [&](CommonChange::Kind kind, bool without_bias, double unchanged, const auto& name_of) {
    const CommonChange change(seen, kind, without_bias);
    const Range range = change.allowed(elements);
    if (!(range.low <= range.high) || !std::isfinite(range.low) || !std::isfinite(range.high) ||
        range.holds(unchanged))
      return;
    const std::string text = shortest_within(range);
    const double value = std::strtod(text.c_str(), nullptr);
    all.push_back({name_of(value, text), [change, value]() -> PredictElement {
                     return [change, value](size_t i) { return change.predicted(i, value); };
                   }});
  };
  const auto ratio = [](const char* of) {
    return [of](double, const std::string& text) {
      return std::string(of) + " is " + text + " times the right one";
    };
  };
  add(CommonChange::Kind::ratio, false, 1, ratio("y"));
  if (seen.input.op == Op::linear && !seen.input.bias.empty())
    add(CommonChange::Kind::ratio, true, 1, ratio("the sum before the bias"));
  add(CommonChange::Kind::difference, false, 0, [](double value, const std::string& text) {
    return "y is " + (value < 0 ? text.substr(1) + " below" : text + " above") + " the right one";
  });
  return all;
}

}  // namespace qcts
