// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "reports/failure_title.h"
#include "suites/inputs/cut.h"
#include "suites/judge/replay.h"

namespace qcts {
namespace {

class Shrinker {
 public:
  Shrinker(const Replay& start, const std::function<bool(const Replay&)>& fails, uint64_t budget)
      : best_(start), fails_(fails), budget_(budget) {}

  Replay run() {
    for (bool smaller = true; smaller && tried_ < budget_;) {
      smaller = shrink_shape();
      smaller |= clear_bytes();
    }
    return best_;
  }

  ShrinkStats stats() const { return {tried_, kept_}; }

 private:
  bool accept(const Replay& candidate) {
    if (tried_ >= budget_) return false;
    ++tried_;
    if (!fails_(candidate)) return false;
    ++kept_;
    best_ = candidate;
    return true;
  }

  // Only plain layouts can be cut: packed planes have their own shapes.
  bool shrink_shape() {
    bool any = shrink_axis([](KernelInput& i) -> int64_t& { return i.m; });
    any |= shrink_axis([](KernelInput& i) -> int64_t& { return i.weight.n; });
    any |= shrink_axis([](KernelInput& i) -> int64_t& { return i.weight.k; });
    return any;
  }

  template <typename Axis>
  bool shrink_axis(Axis axis) {
    bool any = false;
    const int64_t unit =
        std::max<int64_t>(1, &axis(best_.input) == &best_.input.weight.k ? best_.input.scheme->group() : 1);
    for (int64_t step = axis(best_.input) / 2; step > 0; step /= 2) {
      const int64_t cut = std::max(unit, step / unit * unit);
      while (axis(best_.input) > cut && (try_cut(axis, cut, End::first) || try_cut(axis, cut, End::last)))
        any = true;
    }
    return any;
  }

  template <typename Axis>
  bool try_cut(Axis axis, int64_t cut, End end) {
    Replay candidate = best_;
    axis(candidate.input) -= cut;
    const KernelInput& old = best_.input;
    KernelInput& input = candidate.input;
    if (input.scheme->refusal(input.weight) || input.scheme->refusal(input.weight, input.layout))
      return false;
    const Layout layout = input.op == Op::unpack ? input.layout : kPlain;
    Planes planes = old.planes;
    if (layout != kPlain) planes = old.scheme->unpack(planes, old.weight, layout);
    input.planes.clear();
    if (!planes.empty()) {
      std::optional<Planes> cut_to = cut_planes(*input.scheme, planes, input.weight, input.activation, end);
      if (!cut_to) return false;
      input.planes = std::move(*cut_to);
      if (layout != kPlain) input.planes = input.scheme->pack(input.planes, input.weight, layout);
    }
    if (!old.x.empty()) {
      const bool linear = old.has_rows_of_x();
      const int64_t before[2] = {linear ? old.m : old.weight.n, old.weight.k};
      const int64_t after[2] = {linear ? input.m : input.weight.n, input.weight.k};
      input.x = cut_array(old.x, before, after, dtype_bytes(old.x_dtype), end);
    }
    if (!old.bias.empty())
      input.bias =
          cut_array(old.bias, {&old.weight.n, 1}, {&input.weight.n, 1}, dtype_bytes(old.bias_dtype), end);
    return accept(candidate);
  }

  bool clear_bytes() {
    bool any = false;
    if (!best_.input.bias.empty()) {
      Replay candidate = best_;
      candidate.input.bias.clear();
      any |= accept(candidate);
    }
    any |= clear([](KernelInput& input) -> std::vector<std::byte>& { return input.x; });
    for (size_t i = 0; i < best_.input.planes.size(); ++i)
      any |= clear([i](KernelInput& input) -> std::vector<std::byte>& { return input.planes[i].bytes; });
    return any;
  }

  template <typename Field>
  bool clear(Field field) {
    bool any = false;
    const size_t size = field(best_.input).size();
    for (size_t run = size; run > 0; run /= 2)
      for (size_t at = 0; at < size; at += run) {
        Replay candidate = best_;
        std::vector<std::byte>& bytes = field(candidate.input);
        const size_t end = std::min(size, at + run);
        const auto first = bytes.begin() + static_cast<ptrdiff_t>(at),
                   last = bytes.begin() + static_cast<ptrdiff_t>(end);
        if (std::all_of(first, last, [](std::byte b) { return b == std::byte{0}; })) continue;
        std::fill(first, last, std::byte{0});
        any |= accept(candidate);
      }
    return any;
  }

  Replay best_;
  const std::function<bool(const Replay&)>& fails_;
  const uint64_t budget_;
  uint64_t tried_ = 0, kept_ = 0;
};

}  // namespace

Replay shrink(const Replay& start, const std::function<bool(const Replay&)>& fails, uint64_t budget,
              ShrinkStats* stats) {
  Shrinker shrinker(start, fails, budget);
  Replay smallest = shrinker.run();
  if (stats != nullptr) *stats = shrinker.stats();
  return smallest;
}

Shrinking shrink_both(const Replay& start, const Verdict& first,
                      const std::function<Verdict(const Replay&)>& judge, uint64_t budget) {
  const std::string hypothesis = hypothesis_of(first.reason);
  Verdict last = first;
  // Remembers the verdict on the last input that was accepted.
  const auto fails_with = [&](bool same_hypothesis) {
    return [&, same_hypothesis](const Replay& replay) {
      Verdict verdict = judge(replay);
      if (verdict.status != first.status) return false;
      if (same_hypothesis && hypothesis_of(verdict.reason) != hypothesis) return false;
      last = std::move(verdict);
      return true;
    };
  };
  Shrinking result;
  ShrinkStats stats;
  result.same.replay = shrink(start, fails_with(!hypothesis.empty()), budget, &stats);
  result.same.verdict = last;
  result.tried = stats.tried;
  if (hypothesis.empty() || stats.tried >= budget) return result;
  Replay smaller = shrink(result.same.replay, fails_with(false), budget - stats.tried, &stats);
  result.tried += stats.tried;
  if (stats.kept != 0) result.smaller = {std::move(smaller), last};
  return result;
}

}  // namespace qcts
