// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/weight_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <set>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/weight_regions.h"

namespace qcts {
namespace {

using Place = WeightPlace;
using Region = WeightRegion;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

bool close(double want, double got, double tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (want == got) return true;
  return std::fabs(want - got) <= tolerance * std::max(std::fabs(want), std::fabs(got));
}

double value_of(const ExactWeight& weight) { return weight.product + weight.zero; }

// The exact weights of all rows.
class Matrix2 {
 public:
  Matrix2(const Scheme& scheme, const WeightShape& shape, const Planes& planes)
      : n_(shape.n), k_(shape.k), weights_(static_cast<size_t>(shape.n * shape.k)) {
    for (int64_t row = 0; row < n_; ++row)
      scheme.exact_row(planes, shape, row,
                       std::span(weights_).subspan(static_cast<size_t>(row * k_), static_cast<size_t>(k_)));
  }
  // Returns a zero weight outside the matrix.
  ExactWeight at(int64_t row, int64_t column) const {
    if (row < 0 || row >= n_ || column < 0 || column >= k_) return {};
    return weights_[static_cast<size_t>(row * k_ + column)];
  }

 private:
  int64_t n_, k_;
  std::vector<ExactWeight> weights_;
};

using Predict = std::function<double(const Place&)>;
struct Hypothesis {
  std::string name;
  Predict predict;
};

// Generates hypotheses from the names of the scheme's planes: codes are in "qdata"; "scale" and "zero_point"
// are separate planes or both in "scale_and_zero".
class Hypotheses {
 public:
  explicit Hypotheses(const SeenWeights& seen)
      : scheme_(*seen.scheme),
        shape_(seen.shape),
        planes_(*seen.planes),
        truth_(scheme_, shape_, planes_),
        group_(scheme_.group() == 0 ? shape_.k : scheme_.group()) {
    add_missing();
    add_codes();
    add_zeros();
    add_groups();
    add_scales();
    add_neighbours();
    add_types();
  }

  const Matrix2& truth() const { return truth_; }
  bool is_finite_row(int64_t row) const {
    for (int64_t column = 0; column < shape_.k; ++column)
      if (!std::isfinite(value_of(truth_.at(row, column)))) return false;
    return true;
  }
  const std::vector<Hypothesis>& all() const { return all_; }

 private:
  using Edit = std::function<void(Planes&)>;

  void add(std::string name, Predict predict) { all_.push_back({std::move(name), std::move(predict)}); }

  // Adds the hypothesis that the kernel reads the planes as changed by `edit`.
  void add_edit(std::string name, const Edit& edit) {
    Planes changed = planes_;
    edit(changed);
    try {
      const auto matrix = std::make_shared<Matrix2>(scheme_, shape_, changed);
      add(std::move(name), [matrix](const Place& p) { return value_of(matrix->at(p.row, p.column)); });
    } catch (const std::exception&) {  // the scheme refuses these planes, so this mistake is impossible
    }
  }

  const Plane* find(std::string_view name) const {
    const auto found = std::ranges::find(planes_, name, &Plane::name);
    return found == planes_.end() ? nullptr : &*found;
  }
  static Plane& in(Planes& planes, std::string_view name) {
    return *std::ranges::find(planes, name, &Plane::name);
  }

  // Reorders a plane's elements: element i becomes the old element source(i).
  static void permute(Plane& plane, size_t element_bytes, const std::function<size_t(size_t)>& source) {
    const std::vector<std::byte> old = plane.bytes;
    for (size_t i = 0; i < old.size() / element_bytes; ++i)
      std::memcpy(plane.bytes.data() + i * element_bytes, old.data() + source(i) * element_bytes,
                  element_bytes);
  }

  void add_missing() {
    add("the weight is dropped", [](const Place&) { return 0.0; });
    add("the weight is not a number", [](const Place&) { return kNoNumber; });
  }

  void add_codes() {
    const Plane* codes = find("qdata");
    if (codes == nullptr) return;
    const bool nibbles = codes->bytes.size() * 2 == static_cast<size_t>(shape_.n * shape_.k);
    const auto each_byte = [](std::byte (*change)(std::byte)) {
      return [change](Planes& planes) {
        for (std::byte& byte : in(planes, "qdata").bytes) byte = change(byte);
      };
    };
    if (nibbles) {
      add_edit("nibbles swapped", each_byte([](std::byte b) { return b << 4 | b >> 4; }));
      add_edit("codes read as two's complement", each_byte([](std::byte b) { return b ^ std::byte{0x88}; }));
    }
    if (codes->dtype == DType::int8)
      add("code minus zero point wraps in eight bits", [this](const Place& p) {
        const ExactWeight w = truth_.at(p.row, p.column);
        return static_cast<int8_t>(static_cast<int>(w.code)) * w.scale + w.zero;
      });
    if (codes->dtype == DType::float8_e4m3fn) add_float_codes();
  }

  void add_float_codes() {
    const Plane* codes = find("qdata");
    add("NaN codes read as 480", [this, codes](const Place& p) {
      const ExactWeight w = truth_.at(p.row, p.column);
      if (!std::isnan(w.code)) return value_of(w);
      const auto byte = codes->bytes[static_cast<size_t>(p.row * shape_.k + p.column)];
      return ((byte & std::byte{0x80}) != std::byte{0} ? -480.0 : 480.0) * w.scale;
    });
    add("subnormal codes read as zero", [this](const Place& p) {
      const ExactWeight w = truth_.at(p.row, p.column);
      return std::fabs(w.code) < 0x1p-6 ? 0.0 : value_of(w);
    });
    add("exponent bias one higher",
        [this](const Place& p) { return value_of(truth_.at(p.row, p.column)) / 2; });
    add("exponent bias one lower",
        [this](const Place& p) { return value_of(truth_.at(p.row, p.column)) * 2; });
  }

  void add_zeros() {
    const auto moved_code = [this](double by) {
      return [this, by](const Place& p) {
        const ExactWeight w = truth_.at(p.row, p.column);
        return (w.code + by) * w.scale + w.zero;
      };
    };
    if (find("zero_point") != nullptr)
      add_edit("zero point ignored",
               [](Planes& planes) { std::ranges::fill(in(planes, "zero_point").bytes, std::byte{0}); });
    if (find("scale_and_zero") != nullptr) {
      add("zero point ignored", [this](const Place& p) { return truth_.at(p.row, p.column).product; });
      add("zero point subtracted", [this](const Place& p) {
        return truth_.at(p.row, p.column).product - truth_.at(p.row, p.column).zero;
      });
      add("zero of the first group",
          [this](const Place& p) { return truth_.at(p.row, p.column).product + truth_.at(p.row, 0).zero; });
    }
    if (planes_.front().dtype == DType::float8_e4m3fn) return;
    add("zero point one higher", moved_code(-1));
    add("zero point one lower", moved_code(1));
  }

  // Predicts each weight from its own code and the scale and zero point of another place.
  Predict scaled_as(std::function<Place(const Place&)> other) {
    return [this, other](const Place& p) {
      const Place o = other(p);
      const ExactWeight w = truth_.at(p.row, p.column), s = truth_.at(o.row, o.column);
      return w.code * s.scale + s.zero;
    };
  }

  void add_groups() {
    if (group_ >= shape_.k) return;
    const int64_t g = group_, last = shape_.k - 1;
    add("scale of the next group", scaled_as([=](const Place& p) {
          return Place{p.row, std::min(p.column + g, last)};
        }));
    add("scale of the previous group", scaled_as([=](const Place& p) {
          return Place{p.row, std::max<int64_t>(p.column - g, 0)};
        }));
    add("scale of the first group", scaled_as([](const Place& p) { return Place{p.row, 0}; }));
    for (const int64_t tile : {64, 128, 256})
      if (tile != g)
        add("group index counted by tiles of " + std::to_string(tile), scaled_as([=](const Place& p) {
              return Place{p.row, p.column / tile * (tile / g) * g};
            }));
    if (find("scale_and_zero") != nullptr) {
      const auto groups = static_cast<size_t>(shape_.k / g), n = static_cast<size_t>(shape_.n);
      const size_t pair = 2 * dtype_bytes(find("scale_and_zero")->dtype);
      // Element (group, row) of the plane is read at (row, group).
      add_edit("scales read transposed", [=](Planes& planes) {
        permute(in(planes, "scale_and_zero"), pair, [=](size_t i) { return i % n * groups + i / n; });
      });
    }
  }

  void add_scales() {
    const int64_t n = shape_.n;
    // At the edge, a kernel may go around, stop, or read what happens to be there.
    add("scale of the next row", scaled_as([=](const Place& p) { return Place{(p.row + 1) % n, p.column}; }));
    add("scale of the next row", scaled_as([=](const Place& p) {
          return Place{std::min(p.row + 1, n - 1), p.column};
        }));
    add("scale of the previous row", scaled_as([=](const Place& p) {
          return Place{(p.row + n - 1) % n, p.column};
        }));
    add("scale of the previous row", scaled_as([=](const Place& p) {
          return Place{std::max<int64_t>(p.row - 1, 0), p.column};
        }));
    add("scale of the first row", scaled_as([](const Place& p) { return Place{0, p.column}; }));
    if (scheme_.group() == 0)
      add("scale indexed by column", scaled_as([=](const Place& p) {
            return Place{p.column % n, p.column};
          }));
    add("scale ignored",
        [this](const Place& p) { return truth_.at(p.row, p.column).code + truth_.at(p.row, p.column).zero; });
    if (find("scale_and_zero") != nullptr) {
      const size_t bytes = dtype_bytes(find("scale_and_zero")->dtype);
      add_edit("scale and zero swapped", [=](Planes& planes) {
        permute(in(planes, "scale_and_zero"), bytes, [](size_t i) { return i ^ 1; });
      });
    }
  }

  void add_neighbours() {
    const int64_t n = shape_.n, k = shape_.k;
    const auto add_moved = [&](const char* name, int64_t rows, int64_t columns) {
      const auto value_at = [this](int64_t row, int64_t column) { return value_of(truth_.at(row, column)); };
      add(name,
          [=](const Place& p) { return value_at((p.row + rows + n) % n, (p.column + columns + k) % k); });
      add(name, [=](const Place& p) {
        return value_at(std::clamp<int64_t>(p.row + rows, 0, n - 1),
                        std::clamp<int64_t>(p.column + columns, 0, k - 1));
      });
      add(name, [=](const Place& p) {
        const int64_t at = (p.row + rows) * k + p.column + columns;
        return at < 0 || at >= n * k ? kNoNumber : value_at(at / k, at % k);
      });
    };
    add_moved("the previous column", 0, -1);
    add_moved("the next column", 0, 1);
    add_moved("the previous row", -1, 0);
    add_moved("the next row", 1, 0);
  }

  void add_types() {
    for (const DType narrow : {DType::bfloat16, DType::float16}) {
      const std::string type(dtype_name(narrow));
      const auto rounded = [narrow](double value) {
        return decode_float(narrow, encode_float(narrow, value));
      };
      add("scale read as " + type, [=, this](const Place& p) {
        const ExactWeight w = truth_.at(p.row, p.column);
        return w.code * rounded(w.scale) + rounded(w.zero);
      });
      add("weights or sums rounded to " + type,
          [=, this](const Place& p) { return rounded(value_of(truth_.at(p.row, p.column))); });
    }
    add("subnormal weights read as zero", [this](const Place& p) {
      const double value = value_of(truth_.at(p.row, p.column));
      return std::fabs(value) < 0x1p-126 ? 0.0 : value;
    });
    add("tiny scales read as zero", [this](const Place& p) {
      const ExactWeight w = truth_.at(p.row, p.column);
      return std::fabs(w.scale) < 0x1p-100 ? w.zero : value_of(w);
    });
  }

  const Scheme& scheme_;
  const WeightShape shape_;
  const Planes& planes_;
  const Matrix2 truth_;
  const int64_t group_;
  std::vector<Hypothesis> all_;
};

struct Weighed {
  Place place;
  double want = 0, got = 0;
  bool is_right = false;
};

size_t distinct_pairs(const std::vector<Weighed>& wrong) {
  const auto comparable = [](double value) { return std::isnan(value) ? HUGE_VAL : value; };
  std::set<std::pair<double, double>> pairs;
  for (const Weighed& one : wrong) pairs.emplace(comparable(one.want), comparable(one.got));
  return pairs.size();
}

// Weights that are special for their values, a block of NaN for instance, say nothing about the place where
// they happen to be.
std::optional<Region> region_of(std::vector<Region> candidates, const std::vector<Weighed>& all,
                                const std::vector<Weighed>& wrong) {
  const auto is_special = [](const Weighed& one) {
    return !std::isfinite(one.want) || std::fabs(one.want) < 0x1p-126;
  };
  if (std::ranges::all_of(wrong, is_special)) return std::nullopt;
  for (Region& candidate : candidates) {
    if (!std::ranges::all_of(wrong, candidate.holds, &Weighed::place)) continue;
    const auto inside = std::ranges::count_if(all, candidate.holds, &Weighed::place);
    if (2 * wrong.size() >= static_cast<size_t>(inside)) return std::move(candidate);
  }
  return std::nullopt;
}

}  // namespace

WeightExplanation explain_weights(const SeenWeights& seen) {
  const Hypotheses hypotheses(seen);
  WeightExplanation result;
  result.are_probed_all = seen.columns.size() == static_cast<size_t>(seen.shape.k);
  std::vector<Weighed> all, wrong;
  for (int64_t row = 0; row < seen.shape.n; ++row)
    for (size_t i = 0; i < seen.columns.size(); ++i) {
      const Place place{row, seen.columns[i]};
      const double got = seen.values[static_cast<size_t>(row) * seen.columns.size() + i];
      const double want = value_of(hypotheses.truth().at(place.row, place.column));
      // In the sum of a one-hot row, 0 times another weight of the row is NaN if that weight is not a number.
      if (seen.m > 0 && std::isnan(got) && !hypotheses.is_finite_row(row)) continue;
      all.push_back({place, want, got, close(want, got, seen.tolerance)});
      if (!all.back().is_right) wrong.push_back(all.back());
    }
  result.wrong = wrong.size();
  result.seen = all.size();
  if (wrong.empty()) return result;
  result.first_row = wrong[0].place.row;
  result.first_column = wrong[0].place.column;
  result.want = wrong[0].want;
  result.got = wrong[0].got;
  result.distinct = distinct_pairs(wrong);
  result.are_dropped =
      std::ranges::all_of(wrong, [](const Weighed& one) { return std::isfinite(one.want) && one.got == 0; });
  const int64_t group = seen.scheme->group() == 0 ? seen.shape.k : seen.scheme->group();
  const std::optional<Region> region = region_of(weight_regions(seen.shape, group), all, wrong);
  if (region) result.region = region->name;

  for (const Hypothesis& hypothesis : hypotheses.all()) {
    RankedHypothesis ranked{hypothesis.name, 0, 0, 0};
    for (const Weighed& one : all) {
      if (region && !region->holds(one.place)) continue;
      // The kernel's weight is rounded, so it is compared with the prediction; the right weight is not.
      const bool is_predicted = close(hypothesis.predict(one.place), one.got, seen.tolerance);
      if (one.is_right && !is_predicted) ++ranked.refuted;
      if (!one.is_right && is_predicted) ++ranked.explained;
    }
    ranked.score = static_cast<double>(ranked.explained) / static_cast<double>(wrong.size() + ranked.refuted);
    if (ranked.explained > 0) result.ranked.push_back(std::move(ranked));
  }
  std::ranges::stable_sort(result.ranked, std::ranges::greater{}, &RankedHypothesis::score);
  // Keeps the best of the forms of one mistake.
  std::vector<RankedHypothesis> named;
  for (RankedHypothesis& one : result.ranked)
    if (std::ranges::find(named, one.name, &RankedHypothesis::name) == named.end())
      named.push_back(std::move(one));
  result.ranked = std::move(named);
  return result;
}

}  // namespace qcts
