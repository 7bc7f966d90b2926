#include "suites/effective_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr int64_t kMostColumns = 256;

// Whole weights are probed when k is small, otherwise both ends, where tails are.
std::vector<int64_t> probed_columns(int64_t k) {
  std::vector<int64_t> columns;
  for (int64_t c = 0; c < k; ++c)
    if (k <= kMostColumns || c < kMostColumns / 2 || c >= k - kMostColumns / 2) columns.push_back(c);
  return columns;
}

// effective[n * columns + i]: what output n answers to a one at columns[i]. As many rows a call as the
// failing problem had, because kernels take different paths for different m.
std::vector<double> probe(const qcts_kernel& kernel, const KernelInput& input,
                          const std::vector<int64_t>& columns, uint32_t threads) {
  const int64_t n = input.weight.n, k = input.weight.k;
  std::vector<double> effective(static_cast<size_t>(n) * columns.size());
  KernelInput asked = input;
  asked.bias.clear();
  for (size_t begin = 0; begin < columns.size(); begin += static_cast<size_t>(input.m)) {
    std::vector<std::byte> x(static_cast<size_t>(input.m * k) * dtype_bytes(input.x_dtype));
    for (size_t i = 0; i < static_cast<size_t>(input.m) && begin + i < columns.size(); ++i)
      store_float(input.x_dtype, x, i * static_cast<size_t>(k) + static_cast<size_t>(columns[begin + i]),
                  1.0);
    asked.x = std::move(x);
    KernelRun run(kernel, asked, {threads, 0, 0});
    const KernelAnswer answer = run.run(Poison::zeros);
    for (size_t i = 0; i < static_cast<size_t>(input.m) && begin + i < columns.size(); ++i)
      for (int64_t r = 0; r < n; ++r)
        effective[static_cast<size_t>(r) * columns.size() + begin + i] =
            load_float(input.y_dtype, answer.y, i * static_cast<size_t>(n) + static_cast<size_t>(r));
  }
  return effective;
}

bool close(double want, double got) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return std::fabs(want - got) <= std::ldexp(std::max(std::fabs(want), std::fabs(got)), -6);
}

struct Hypothesis {
  std::string name;
  std::function<double(int64_t row, int64_t column)> weight;
};

std::vector<Hypothesis> hypotheses(const KernelInput& input, const LinearTruth& truth) {
  const int64_t n = input.weight.n, k = input.weight.k;
  const int64_t group = input.scheme->group() == 0 ? k : input.scheme->group();
  const auto at = [&truth, k, n](int64_t r, int64_t c) -> ExactWeight {
    if (r < 0 || r >= n || c < 0 || c >= k) return {};
    return truth.row(r)[static_cast<size_t>(c)];
  };
  const auto scaled_as = [at](int64_t r, int64_t c, int64_t sr, int64_t sc) {
    const ExactWeight code = at(r, c), scale = at(sr, sc);
    return code.code * scale.scale + scale.zero;
  };
  std::vector<Hypothesis> all;
  all.push_back({"the element is dropped (a tail?)", [](int64_t, int64_t) { return 0.0; }});
  all.push_back({"not a number", [](int64_t, int64_t) { return std::numeric_limits<double>::quiet_NaN(); }});
  all.push_back({"nibbles swapped", [at](int64_t r, int64_t c) {
                   const ExactWeight code = at(r, c ^ 1), own = at(r, c);
                   return code.code * own.scale + own.zero;
                 }});
  if (group < k) {
    all.push_back(
        {"scale of the next group", [=](int64_t r, int64_t c) { return scaled_as(r, c, r, c + group); }});
    all.push_back(
        {"scale of the group before", [=](int64_t r, int64_t c) { return scaled_as(r, c, r, c - group); }});
    all.push_back({"scale of the first group", [=](int64_t r, int64_t c) { return scaled_as(r, c, r, 0); }});
  }
  all.push_back({"scale of the next row", [=](int64_t r, int64_t c) { return scaled_as(r, c, r + 1, c); }});
  all.push_back({"scale of the row before", [=](int64_t r, int64_t c) { return scaled_as(r, c, r - 1, c); }});
  all.push_back({"zero point ignored", [at](int64_t r, int64_t c) { return at(r, c).product; }});
  all.push_back(
      {"zero point subtracted", [at](int64_t r, int64_t c) { return at(r, c).product - at(r, c).zero; }});
  all.push_back({"scale ignored", [at](int64_t r, int64_t c) { return at(r, c).code; }});
  all.push_back({"code's offset of 8 ignored", [at](int64_t r, int64_t c) {
                   return (at(r, c).code + 8) * at(r, c).scale + at(r, c).zero;
                 }});
  all.push_back({"code read as two's complement", [at](int64_t r, int64_t c) {
                   const double code = at(r, c).code < 0 ? at(r, c).code + 8 : at(r, c).code - 8;
                   return code * at(r, c).scale + at(r, c).zero;
                 }});
  all.push_back(
      {"the column before", [at](int64_t r, int64_t c) { return at(r, c - 1).product + at(r, c - 1).zero; }});
  all.push_back(
      {"the next column", [at](int64_t r, int64_t c) { return at(r, c + 1).product + at(r, c + 1).zero; }});
  all.push_back(
      {"the next row", [at](int64_t r, int64_t c) { return at(r + 1, c).product + at(r + 1, c).zero; }});
  return all;
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string explain(const KernelInput& input, const LinearTruth& truth, const std::vector<int64_t>& columns,
                    const std::vector<double>& effective) {
  struct Wrong {
    int64_t row, column;
    double got;
  };
  std::vector<Wrong> wrong;
  for (int64_t r = 0; r < input.weight.n; ++r) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const ExactWeight& w = truth.row(r)[static_cast<size_t>(columns[i])];
      const double got = effective[static_cast<size_t>(r) * columns.size() + i];
      if (!close(w.product + w.zero, got)) wrong.push_back({r, columns[i], got});
    }
  }
  const std::string probed = "effective weights by one-hot probing: ";
  if (wrong.empty()) return probed + "right, so look at the accumulation, the bias and the paths for m > 1";
  const ExactWeight& first = truth.row(wrong[0].row)[static_cast<size_t>(wrong[0].column)];
  std::string text = probed + std::to_string(wrong.size()) + " of " + std::to_string(effective.size()) +
                     " differ, first at row " + std::to_string(wrong[0].row) + ", column " +
                     std::to_string(wrong[0].column) + ": want " + number(first.product + first.zero) +
                     ", got " + number(wrong[0].got);
  std::string best;
  size_t most = 0;
  for (const Hypothesis& hypothesis : hypotheses(input, truth)) {
    const size_t explained =
        static_cast<size_t>(std::count_if(wrong.begin(), wrong.end(), [&](const Wrong& w) {
          return close(hypothesis.weight(w.row, w.column), w.got);
        }));
    if (explained > most) {
      most = explained;
      best = hypothesis.name;
    }
  }
  // Half of the wrong weights by chance alone would be a lot; less than that is no explanation.
  if (2 * most < wrong.size()) return text + "; no simple hypothesis explains them";
  return text + "; hypothesis: " + best + " (explains " + std::to_string(most) + ")";
}

}  // namespace

std::string describe_effective_weights(const qcts_kernel& kernel, const KernelInput& input,
                                       const LinearTruth& truth, uint32_t threads) {
  try {
    const std::vector<int64_t> columns = probed_columns(input.weight.k);
    return explain(input, truth, columns, probe(kernel, input, columns, threads));
  } catch (const std::exception& error) {
    return std::string("one-hot probing failed: ") + error.what();
  }
}

}  // namespace qcts
