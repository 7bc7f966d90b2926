// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/answer_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr size_t kMostElements = size_t{1} << 20;

int64_t columns_of_y(const KernelInput& input) {
  return input.op == Op::linear ? input.weight.n : input.weight.k;
}

bool is_right(const Bounded& want, double got) {
  if (std::isnan(want.value)) return std::isnan(got);
  if (std::isinf(want.value)) return got == want.value;
  return got >= want.low && got <= want.high;
}

bool is_predicted(const Predicted& predicted, double got) {
  if (std::isnan(predicted.low)) return std::isnan(got);
  return got >= predicted.low && got <= predicted.high;
}

// The elements of an answer that a hypothesis has to predict, the wrong ones first.
struct Scope {
  std::vector<size_t> elements;
  std::string region;
};

std::string region_name(const char* what, int64_t first, int64_t last, int64_t count) {
  if (first == last && last == count - 1) return std::string("the last ") + what;
  if (first == last) return std::string(what) + " " + std::to_string(first);
  return std::string("the ") + what + "s from " + std::to_string(first) + " on";
}

class WrongAnswer {
 public:
  explicit WrongAnswer(const SeenAnswer& seen)
      : seen_(seen), columns_(columns_of_y(seen.input)), got_(load_doubles(seen.input.y_type(), seen.got)) {
    for (size_t i = 0; i < got_.size(); ++i)
      if (is_right(seen.want[i], got_[i]))
        right_.push_back(i);
      else
        wrong_.push_back(i);
  }

  uint64_t wrong() const { return wrong_.size(); }

  // Counts different pairs of wanted and got. What is not a number has no value, so its places count.
  size_t distinct() const {
    std::set<std::pair<double, double>> pairs;
    size_t places = 0;
    for (const size_t i : wrong_)
      if (!std::isfinite(seen_.want[i].value))
        ++places;
      else
        pairs.emplace(seen_.want[i].value, std::isnan(got_[i]) ? HUGE_VAL : got_[i]);
    return pairs.size() + places;
  }

  Scope all() const { return within({0, rows() - 1, 0, columns_ - 1}, ""); }

  // Returns the row, the column or the end of y that holds all wrong elements; nullopt if none does.
  std::optional<Scope> part() const {
    Box box{rows(), -1, columns_, -1};
    for (const size_t i : wrong_) {
      const auto row = static_cast<int64_t>(i) / columns_, column = static_cast<int64_t>(i) % columns_;
      box = {std::min(box.first_row, row), std::max(box.last_row, row), std::min(box.first_column, column),
             std::max(box.last_column, column)};
    }
    const bool ends_rows = box.last_row == rows() - 1, ends_columns = box.last_column == columns_ - 1;
    if (rows() > 1 && (box.first_row == box.last_row || (box.first_row > 0 && ends_rows)))
      return within({box.first_row, box.last_row, 0, columns_ - 1},
                    region_name("row", box.first_row, box.last_row, rows()));
    if (columns_ > 1 && (box.first_column == box.last_column || (box.first_column > 0 && ends_columns)))
      return within({0, rows() - 1, box.first_column, box.last_column},
                    region_name("column", box.first_column, box.last_column, columns_));
    return std::nullopt;
  }

  // A prediction that also holds the right answer of nearly all wrong elements explains nothing. Sums have a
  // margin, so that a range may reach over two neighbours of a narrow type.
  bool is_explained_by(const PredictElement& predict, const Scope& scope) const {
    size_t told_apart = 0;
    const bool holds_all = std::ranges::all_of(scope.elements, [&](size_t i) {
      const Predicted predicted = predict(i);
      const Bounded& want = seen_.want[i];
      told_apart += !is_right(want, got_[i]) && !(predicted.low <= want.high && predicted.high >= want.low);
      return is_predicted(predicted, got_[i]);
    });
    return holds_all && 4 * told_apart >= wrong_.size();
  }

 private:
  struct Box {
    int64_t first_row, last_row, first_column, last_column;
  };

  int64_t rows() const { return static_cast<int64_t>(got_.size()) / columns_; }

  Scope within(const Box& box, std::string name) const {
    Scope scope{wrong_, std::move(name)};
    for (const size_t i : right_) {
      const auto row = static_cast<int64_t>(i) / columns_, column = static_cast<int64_t>(i) % columns_;
      if (row >= box.first_row && row <= box.last_row && column >= box.first_column &&
          column <= box.last_column && !is_unbounded(seen_.want[i]))
        scope.elements.push_back(i);
    }
    return scope;
  }

  const SeenAnswer& seen_;
  const int64_t columns_;
  const std::vector<double> got_;
  std::vector<size_t> right_, wrong_;
};

// Returns the first two names of hypotheses that predict all of the scope.
std::vector<std::string> names_that_fit(const SeenAnswer& seen, HypothesesOf of, const WrongAnswer& answer,
                                        const Scope& scope) {
  std::vector<std::string> names;
  for (const AnswerHypothesis& hypothesis : of(seen, scope.elements)) {
    if (names.size() == 2) break;
    if (std::ranges::find(names, hypothesis.name) != names.end()) continue;
    try {
      const PredictElement predict = hypothesis.make();
      if (predict && answer.is_explained_by(predict, scope)) names.push_back(hypothesis.name);
    } catch (const std::exception&) {  // the scheme refuses this input, so this mistake is impossible
    }
  }
  return names;
}

// Explains an answer whose number of different wrong values is between the two.
std::optional<AnswerExplanation> explanation_over(const SeenAnswer& seen, HypothesesOf of, uint64_t wrong,
                                                  size_t least, size_t most) {
  if (seen.got.size() != seen.want.size() * dtype_bytes(seen.input.y_type()) || seen.want.empty() ||
      seen.want.size() > kMostElements)
    return std::nullopt;
  const WrongAnswer answer(seen);
  // An answer that must match in every bit may differ in the sign of a zero, which no value can tell.
  if (seen.input.op == Op::dequantize && answer.wrong() != wrong) return std::nullopt;
  if (const size_t distinct = answer.distinct(); distinct < least || distinct > most) return std::nullopt;
  std::optional<Scope> scope = answer.all();
  std::vector<std::string> names = names_that_fit(seen, of, answer, *scope);
  if (names.empty() && (scope = answer.part())) names = names_that_fit(seen, of, answer, *scope);
  if (names.empty()) return std::nullopt;
  return AnswerExplanation{names[0], names.size() > 1 ? names[1] : "", answer.wrong(), scope->region};
}

}  // namespace

SeenAnswer seen_linear(const KernelInput& input, const Expectation& expectation, const LinearStages& stages,
                       std::span<const std::byte> got) {
  return {input, expectation.wanted(), got, &expectation.reference(), stages};
}

SeenAnswer seen_dequantized(const KernelInput& input, std::span<const std::byte> want,
                            std::span<const std::byte> got) {
  SeenAnswer seen{input, {}, got};
  const size_t n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  std::vector<ExactWeight> row(k);
  for (size_t r = 0; r < n; ++r) {
    input.scheme->exact_row(input.planes, input.weight, static_cast<int64_t>(r), row);
    for (size_t c = 0; c < k; ++c) {
      const double wanted = load_float(input.weight.dtype, want, r * k + c);
      // A product and a sum of float32 come before the rounding to y's type.
      const double error = 0x1p-23 * (std::fabs(row[c].product) + std::fabs(row[c].zero));
      const double value = std::isnan(wanted) ? wanted : row[c].product + row[c].zero;
      seen.want.push_back({value, wanted, wanted, error});
    }
  }
  return seen;
}

std::optional<AnswerExplanation> explain_answer(const SeenAnswer& seen, HypothesesOf of, uint64_t wrong) {
  return explanation_over(seen, of, wrong, kLeastDistinct, std::numeric_limits<size_t>::max());
}

std::string agrees_with(const SeenAnswer& seen, HypothesesOf of, uint64_t wrong) {
  const auto found = explanation_over(seen, of, wrong, kLeastAgreeing, kLeastDistinct - 1);
  return found && found->other.empty() ? found->name : "";
}

std::string describe(const AnswerExplanation& explanation) {
  const std::string wrong = std::to_string(explanation.wrong);
  return "hypothesis: " + explanation.name + " (predicts " + wrong + " of " + wrong + ")" +
         (explanation.region.empty() ? "" : ", all in " + explanation.region) +
         (explanation.other.empty() ? "" : ", or else: " + explanation.other);
}

}  // namespace qcts
