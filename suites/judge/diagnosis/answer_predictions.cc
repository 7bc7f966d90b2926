// SPDX-License-Identifier: BSD-3-Clause
// The mistakes that a wrong y is compared with. Each row of a list is a name and a prediction.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/answer_hypotheses.h"

namespace qcts {
namespace {

constexpr int64_t kMostProducts = int64_t{1} << 26;

// Returns the neighbour of a value of `dtype`, toward zero or away from it.
double neighbour(DType dtype, double value, bool away) {
  const double largest = float_format(dtype).max, smallest = float_format(dtype).min_subnormal;
  if (std::isinf(value)) return away ? value : std::copysign(largest, value);
  if (value == 0) return away ? smallest : 0;
  const uint64_t bits = encode_float(dtype, std::fabs(value));
  return std::copysign(decode_float(dtype, away ? bits + 1 : bits - 1), value);
}

using Rounding = double (*)(DType dtype, double value);

double toward_zero(DType dtype, double value) {
  const double nearest = round_to(dtype, value);
  return std::fabs(nearest) > std::fabs(value) ? neighbour(dtype, nearest, false) : nearest;
}
double upward(DType dtype, double value) {
  const double nearest = round_to(dtype, value);
  if (nearest >= value) return nearest;
  return nearest == 0 ? float_format(dtype).min_subnormal : neighbour(dtype, nearest, nearest > 0);
}
double downward(DType dtype, double value) { return -upward(dtype, -value); }
double away_from_zero(DType dtype, double value) {
  return value < 0 ? downward(dtype, value) : upward(dtype, value);
}
double through_float16(DType dtype, double value) { return round_to(dtype, round_to(DType::float16, value)); }
double through_bfloat16(DType dtype, double value) {
  return round_to(dtype, round_to(DType::bfloat16, value));
}
double cut_to_float16(DType dtype, double value) {
  return round_to(dtype, toward_zero(DType::float16, value));
}
double cut_to_bfloat16(DType dtype, double value) {
  return round_to(dtype, toward_zero(DType::bfloat16, value));
}
double flushed(DType dtype, double value) {
  const double nearest = round_to(dtype, value);
  return std::fabs(nearest) < float_format(dtype).min_normal ? 0 : nearest;
}
double saturated(DType dtype, double value) {
  const double largest = float_format(dtype).max;
  return std::clamp(round_to(dtype, value), -largest, largest);
}

std::string shortest(double value) {
  if (std::isnan(value)) return "NaN";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value || digits >= 6) break;
  }
  return text;
}

// The linear on another x or bias. Its rows of weights are those of the right answer's reference.
struct Recomputed {
  explicit Recomputed(KernelInput changed) : input(std::move(changed)), reference(input, false) {}
  KernelInput input;
  LinearReference reference;
};

class AnswerTable {
 public:
  AnswerTable(const SeenAnswer& seen, std::span<const size_t> elements)
      : seen_(seen), elements_(elements), dtype_(seen.input.y_type()) {
    add_values();
    add_roundings();
    if (seen.input.op != Op::linear) return;
    add_places();
    if (seen.input.m * seen.input.weight.n * seen.input.weight.k > kMostProducts) return;
    add_bias();
    add_x();
    add_sums();
  }
  std::vector<AnswerHypothesis> take() { return std::move(all_); }

 private:
  using Edit = std::function<bool(KernelInput&)>;  // false: this input cannot be changed so

  void add(std::string name, std::function<PredictElement()> make) {
    all_.push_back({std::move(name), std::move(make)});
  }

  // The right answer with another value in place of those that `is_changed` names. It is the first that the
  // kernel gave for one of them.
  void add_value(const char* what, bool (*is_changed)(const Bounded&)) {
    const auto first = std::ranges::find_if(elements_, [&](size_t i) { return is_changed(seen_.want[i]); });
    if (first == elements_.end()) return;
    const double got = load_float(dtype_, seen_.got, *first);
    const bool has_sign = std::isinf(seen_.want[*first].value) && !std::isnan(got);
    const double value = has_sign ? std::fabs(got) : got;
    add(std::string(what) + " replaced by " + shortest(value), [&seen = seen_, is_changed, has_sign, value] {
      return [&seen, is_changed, has_sign, value](size_t i) {
        const Bounded& want = seen.want[i];
        if (!is_changed(want)) return right(want);
        const double replaced = has_sign ? std::copysign(value, want.value) : value;
        return Predicted{replaced, replaced};
      };
    });
  }

  void add_values() {
    add_value("NaN", [](const Bounded& want) { return std::isnan(want.value); });
    add_value("infinity", [](const Bounded& want) { return std::isinf(want.value); });
    add_after("overflow held at the largest number", saturated);
    if (float_format(dtype_).min_subnormal < float_format(dtype_).min_normal)
      add_after("subnormal results flushed to zero", flushed);
  }

  static Predicted right(const Bounded& want) {
    if (!std::isfinite(want.value)) return {want.value, want.value};
    return {want.low, want.high};
  }

  // The right answer, changed by a monotonic function.
  void add_after(const char* name, Rounding change) {
    add(name, [&seen = seen_, change] {
      return [&seen, change](size_t i) {
        const Bounded& want = seen.want[i];
        if (!std::isfinite(want.value)) return right(want);
        return Predicted{change(seen.input.y_type(), want.low), change(seen.input.y_type(), want.high)};
      };
    });
  }

  // The sum, rounded to y's type by a monotonic function instead of to nearest.
  void add_rounding(const char* name, Rounding round) {
    add(name, [&seen = seen_, round] {
      return [&seen, round](size_t i) {
        const Bounded& want = seen.want[i];
        if (!std::isfinite(want.value)) return right(want);
        return Predicted{round(seen.input.y_type(), want.value - want.error),
                         round(seen.input.y_type(), want.value + want.error)};
      };
    });
  }

  void add_roundings() {
    add_rounding("y rounded toward zero", toward_zero);
    add_rounding("y rounded away from zero", away_from_zero);
    add_rounding("y rounded up", upward);
    add_rounding("y rounded down", downward);
    if (dtype_ != DType::float16) {
      add_rounding("y rounded to float16 first", through_float16);
      add_rounding("y truncated to float16 first", cut_to_float16);
    }
    if (dtype_ != DType::bfloat16) {
      add_rounding("y rounded to bfloat16 first", through_bfloat16);
      add_rounding("y truncated to bfloat16 first", cut_to_bfloat16);
    }
  }

  // The right answer of another place: `source` returns its row and column.
  void add_place(const char* name, std::function<size_t(size_t row, size_t column)> source) {
    add(name, [&seen = seen_, n = n(), source = std::move(source)] {
      return [&seen, n, source](size_t i) { return right(seen.want[source(i / n, i % n)]); };
    });
  }

  void add_places() {
    const size_t m = static_cast<size_t>(seen_.input.m), columns = n();
    if (m > 1) {
      add_place("x of the previous row", [=](size_t r, size_t c) { return (r + m - 1) % m * columns + c; });
      add_place("x of the previous row",
                [=](size_t r, size_t c) { return (r == 0 ? 0 : r - 1) * columns + c; });
      add_place("x of the first row", [=](size_t, size_t c) { return c; });
      add_place("x of the next row", [=](size_t r, size_t c) { return (r + 1) % m * columns + c; });
      add_place("x of the next row",
                [=](size_t r, size_t c) { return std::min(r + 1, m - 1) * columns + c; });
    }
    if (columns > 1) {
      add_place("y of the previous column",
                [=](size_t r, size_t c) { return r * columns + (c + columns - 1) % columns; });
      add_place("y of the previous column",
                [=](size_t r, size_t c) { return r * columns + (c == 0 ? 0 : c - 1); });
      // The last columns all repeat the one before them.
      const size_t first = first_column();
      add_place("y of the previous column",
                [=](size_t r, size_t) { return r * columns + (first == 0 ? 0 : first - 1); });
      add_place("y of the next column", [=](size_t r, size_t c) { return r * columns + (c + 1) % columns; });
      add_place("y of the next column",
                [=](size_t r, size_t c) { return r * columns + std::min(c + 1, columns - 1); });
    }
    if (m > 1 && columns > 1)
      add_place("y written transposed", [=](size_t r, size_t c) {
        const size_t i = r * columns + c;
        return i % m * columns + i / m;
      });
  }

  size_t first_column() const {
    size_t first = n();
    for (const size_t i : elements_) first = std::min(first, i % n());
    return first;
  }

  // The right answer to a changed input.
  void add_input(std::string name, Edit edit) {
    add(std::move(name), [&seen = seen_, n = n(), edit = std::move(edit)]() -> PredictElement {
      KernelInput changed = seen.input;
      if (!edit(changed)) return nullptr;
      const auto made = std::make_shared<Recomputed>(std::move(changed));
      return [&seen, n, made](size_t i) {
        const auto row = static_cast<int64_t>(i / n), column = static_cast<int64_t>(i % n);
        return right(made->reference.bounded(seen.reference->row(column), row, column, seen.stages));
      };
    });
  }

  // Each element of the bias becomes `from`: a function of the whole bias and a column.
  void add_changed_bias(const char* name,
                        std::function<double(const std::vector<double>&, size_t column)> from) {
    add_input(name, [from = std::move(from)](KernelInput& input) {
      const std::vector<double> bias = load_doubles(input.bias_dtype, input.bias);
      input.bias_dtype = DType::float64;
      input.bias.resize(bias.size() * sizeof(double));
      for (size_t c = 0; c < bias.size(); ++c) store_float(DType::float64, input.bias, c, from(bias, c));
      return true;
    });
  }

  void add_bias() {
    using Values = std::vector<double>;
    if (seen_.input.bias.empty()) return;
    add_changed_bias("bias missing", [](const Values&, size_t) { return 0.0; });
    add_changed_bias("bias added twice", [](const Values& bias, size_t c) { return 2 * bias[c]; });
    add_changed_bias("bias subtracted", [](const Values& bias, size_t c) { return -bias[c]; });
    add_changed_bias("bias of the previous column",
                     [](const Values& bias, size_t c) { return bias[(c + bias.size() - 1) % bias.size()]; });
    add_changed_bias("bias of the previous column",
                     [](const Values& bias, size_t c) { return bias[c == 0 ? 0 : c - 1]; });
    add_changed_bias("bias of the next column",
                     [](const Values& bias, size_t c) { return bias[(c + 1) % bias.size()]; });
    add_changed_bias("bias of the next column",
                     [](const Values& bias, size_t c) { return bias[std::min(c + 1, bias.size() - 1)]; });
    add_changed_bias("bias of the first column", [](const Values& bias, size_t) { return bias[0]; });
    for (const DType other : {DType::float32, DType::bfloat16, DType::float16}) {
      if (other == seen_.input.bias_dtype || dtype_bytes(other) > dtype_bytes(seen_.input.bias_dtype))
        continue;
      add_input("bias read as " + std::string(dtype_name(other)), [other](KernelInput& input) {
        input.bias_dtype = other;
        return true;
      });
    }
  }

  // Every row of x is changed by `change`. The values need not fit x's type.
  void add_changed_x(std::string name, std::function<void(std::span<double> x, size_t k)> change) {
    add_input(std::move(name), [change = std::move(change)](KernelInput& input) {
      std::vector<double> x = load_doubles(input.x_dtype, input.x);
      change(x, static_cast<size_t>(input.weight.k));
      if (input.activation == kWeightOnly) input.x_dtype = DType::float64;
      input.x.resize(x.size() * dtype_bytes(input.x_dtype));
      for (size_t i = 0; i < x.size(); ++i) store_float(input.x_dtype, input.x, i, x[i]);
      return true;
    });
  }

  void add_x() {
    const auto k = seen_.input.weight.k;
    add_changed_x("the last element of k left out", [](std::span<double> x, size_t width) {
      for (size_t i = width - 1; i < x.size(); i += width) x[i] = 0;
    });
    for (int64_t step = 2, told = 1; step <= 256; step *= 2) {
      const int64_t tail = k % step;
      if (tail <= told || k < step) continue;
      told = tail;
      add_changed_x("the last k % " + std::to_string(step) + " elements of k left out",
                    [tail](std::span<double> x, size_t width) {
                      for (size_t i = 0; i < x.size(); ++i)
                        if (i % width >= width - static_cast<size_t>(tail)) x[i] = 0;
                    });
    }
    const DType own = seen_.input.x_dtype;
    add_changed_x("infinity in x read as the largest number", [own](std::span<double> x, size_t) {
      for (double& value : x)
        if (std::isinf(value)) value = std::copysign(float_format(own).max, value);
    });
    add_changed_x("NaN in x read as 0", [](std::span<double> x, size_t) {
      for (double& value : x)
        if (std::isnan(value)) value = 0;
    });
    add_changed_x("subnormal x read as zero", [own](std::span<double> x, size_t) {
      for (double& value : x)
        if (std::fabs(value) < float_format(own).min_normal) value = 0;
    });
    for (const DType narrow : {DType::bfloat16, DType::float16})
      if (own != narrow)
        add_changed_x("x rounded to " + std::string(dtype_name(narrow)),
                      [narrow](std::span<double> x, size_t) {
                        for (double& value : x) value = round_to(narrow, value);
                      });
    if (seen_.input.activation == kWeightOnly) add_quantized_x();
  }

  // x in codes, with one scale for each row or for all of x.
  void add_quantized_x() {
    const auto codes_of = [](std::span<double> part, double largest, const auto& round) {
      double absmax = 0;
      for (const double value : part) absmax = std::max(absmax, std::fabs(value));
      const double scale = static_cast<float>(absmax / largest);
      if (scale > 0 && std::isfinite(scale))
        for (double& value : part) value = round(value / scale) * scale;
    };
    const auto to_int8 = [](double code) { return std::clamp(std::nearbyint(code), -128.0, 127.0); };
    const auto to_fp8 = [](double code) { return round_to(DType::float8_e4m3fn, code); };
    for (const bool by_row : {true, false}) {
      const char* const by = by_row ? " by row" : " by tensor";
      const auto add_codes = [&](const char* type, double largest, auto round) {
        add_changed_x(std::string("x rounded to ") + type + by, [=](std::span<double> x, size_t width) {
          const size_t step = by_row ? width : x.size();
          for (size_t first = 0; first < x.size(); first += step)
            codes_of(x.subspan(first, step), largest, round);
        });
      };
      add_codes("int8", 127, to_int8);
      add_codes("int8", 127.5, to_int8);
      add_codes("float8_e4m3fn", 448, to_fp8);
    }
    add_changed_x("x rounded to float8_e4m3fn without a scale", [=](std::span<double> x, size_t) {
      for (double& value : x) value = to_fp8(value);
    });
  }

  // Sums in the order of k, each rounded to a narrow type.
  void add_sums() {
    if (seen_.input.activation != kWeightOnly) return;
    for (const DType narrow : {DType::bfloat16, DType::float16})
      add("sums kept in " + std::string(dtype_name(narrow)), [&seen = seen_, n = n(), narrow] {
        return [&seen, n, narrow](size_t i) {
          const auto row = seen.reference->row(static_cast<int64_t>(i % n));
          const auto x = seen.reference->x(static_cast<int64_t>(i / n));
          float sum = 0;
          for (size_t k = 0; k < x.size(); ++k)
            sum = round_to(narrow,
                           sum + static_cast<float>(x[k]) * static_cast<float>(row[k].product + row[k].zero));
          if (!seen.input.bias.empty())
            sum += static_cast<float>(load_float(seen.input.bias_dtype, seen.input.bias, i % n));
          const double y = round_to(seen.input.y_dtype, static_cast<double>(sum));
          return Predicted{y, y};
        };
      });
  }

  size_t n() const { return static_cast<size_t>(seen_.input.weight.n); }

  const SeenAnswer& seen_;
  const std::span<const size_t> elements_;
  const DType dtype_;
  std::vector<AnswerHypothesis> all_;
};

}  // namespace

std::vector<AnswerHypothesis> answer_hypotheses(const SeenAnswer& seen, std::span<const size_t> elements) {
  std::vector<AnswerHypothesis> all = AnswerTable(seen, elements).take();
  const int64_t products = seen.input.m * seen.input.weight.n * seen.input.weight.k;
  if (seen.input.op != Op::linear || products <= kMostProducts) add_arithmetic(seen, all);
  return all;
}

}  // namespace qcts
