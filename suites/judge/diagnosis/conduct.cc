// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/conduct.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "reference/numerics/soft_float.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/sensitivity.h"

namespace qcts {
namespace {

// Long enough for a thread that a call left behind, short compared with a worker's start.
constexpr std::chrono::milliseconds kLateWork{200};

// Sums with fewer bits right are wrong for another reason: results flushed to zero have none.
constexpr int kNarrowestSum = 2;

using Bytes = std::vector<std::byte>;

Bytes answer_bytes(const KernelAnswer& answer) {
  Bytes all = answer.y;
  for (const Plane& plane : answer.planes) all.insert(all.end(), plane.bytes.begin(), plane.bytes.end());
  return all;
}

// Returns the bytes of one element of y; 1 if there is none.
size_t element_bytes(const KernelInput& input) {
  if (input.op == Op::linear) return dtype_bytes(input.y_dtype);
  return input.op == Op::dequantize ? dtype_bytes(input.weight.dtype) : 1;
}

// Returns what GuardedBuffer::poison() wrote.
Bytes bytes_before(const WrongCall& call, Poison poison, size_t count) {
  if (poison == Poison::nan) return Bytes(count, std::byte{0xff});
  if (poison == Poison::zeros) return Bytes(count, std::byte{0});
  Bytes previous = call.previous ? answer_bytes(*call.previous) : Bytes();
  return previous.size() == count ? previous : Bytes(count, std::byte{0xa5});
}

// The elements of y or of one plane in answer_bytes().
struct Output {
  ptrdiff_t first;
  size_t elems, elem_bytes;
};
std::vector<Output> outputs_of(const WrongCall& call) {
  std::vector<Output> outputs;
  ptrdiff_t at = 0;
  const auto add = [&](size_t bytes, size_t elem_bytes) {
    outputs.push_back({at, bytes / elem_bytes, elem_bytes});
    at += static_cast<ptrdiff_t>(bytes);
  };
  add(call.answer.y.size(), element_bytes(call.input));
  for (const Plane& plane : call.answer.planes)
    add(plane.bytes.size(), std::max<size_t>(1, dtype_bits(plane.dtype) / 8));
  return outputs;
}

// Counts the elements of which `holds` is true, given their first byte in answer_bytes() and the one after
// the last.
template <class Holds>
uint64_t count_elements(std::span<const Output> outputs, const Holds& holds) {
  uint64_t count = 0;
  for (const Output& output : outputs)
    for (size_t i = 0; i < output.elems; ++i) {
      const ptrdiff_t first = output.first + static_cast<ptrdiff_t>(i * output.elem_bytes);
      count += holds(first, first + static_cast<ptrdiff_t>(output.elem_bytes));
    }
  return count;
}

bool is_same_between(ptrdiff_t first, ptrdiff_t end, const Bytes& a, const Bytes& b) {
  return std::equal(a.begin() + first, a.begin() + end, b.begin() + first);
}

std::string output_of(const KernelInput& input) {
  return input.op == Op::linear || input.op == Op::dequantize ? "y" : "the output";
}

bool changes_later(const WrongCall& call) {
  std::this_thread::sleep_for(kLateWork);
  try {
    call.run.check_unchanged(call.answer);
    return false;
  } catch (const ProviderFault&) {
    return true;
  }
}

// Returns how many elements neither the call nor another one, over other contents, wrote.
uint64_t unwritten_elements(const WrongCall& call, std::span<const Output> outputs, const Bytes& now,
                            const Bytes& before) {
  const Poison other = call.poison == Poison::zeros ? Poison::nan : Poison::zeros;
  const Bytes contents = bytes_before(call, other, now.size());
  Bytes again;
  try {
    again = answer_bytes(call.run.run(other));
  } catch (const std::exception&) {
    return 0;
  }
  if (again.size() != now.size()) return 0;
  return count_elements(outputs, [&](ptrdiff_t first, ptrdiff_t end) {
    return is_same_between(first, end, now, before) && is_same_between(first, end, again, contents);
  });
}

std::optional<VerdictFinding> unwritten(const WrongCall& call) {
  const Bytes now = answer_bytes(call.answer), before = bytes_before(call, call.poison, now.size());
  const std::vector<Output> outputs = outputs_of(call);
  const uint64_t total = count_elements(outputs, [](ptrdiff_t, ptrdiff_t) { return true; }),
                 as_before = count_elements(outputs, [&](ptrdiff_t first, ptrdiff_t end) {
                   return is_same_between(first, end, now, before);
                 });
  const std::string what = output_of(call.input);
  if (as_before == 0 || as_before < std::min(call.wrong_elems, total)) return std::nullopt;
  if (changes_later(call))
    return VerdictFinding{Caveat::wrote_later, what + " changed after run() had returned"};
  // An output that equals the bytes before the call may have been written, so another call has to leave it
  // too. Only a kernel that skips some calls leaves the bytes of an earlier answer in only one call.
  const bool may_skip_calls = as_before == total && (call.poison == Poison::previous || !call.is_first);
  const uint64_t left = may_skip_calls ? total : unwritten_elements(call, outputs, now, before);
  if (left != total && (left != call.wrong_elems || total == 1)) return std::nullopt;
  if (left != total) return VerdictFinding{Caveat::wrote_part, "the wrong elements were not written"};
  if (call.poison == Poison::previous)
    return VerdictFinding{Caveat::left_earlier_answer,
                          what + " was not written: it still held another answer"};
  if (!call.is_first)
    return VerdictFinding{Caveat::stopped_writing,
                          what + " was not written, although the first call wrote it"};
  return VerdictFinding{Caveat::wrote_nothing, what + " was not written"};
}

bool is_same_everywhere(const Bytes& y, size_t bytes) {
  if (y.size() < 3 * bytes) return false;
  return std::equal(y.begin() + static_cast<ptrdiff_t>(bytes), y.end(), y.begin());
}

// Compares the first elements of each row, as many as both have.
bool is_input(const KernelInput& input, std::span<const std::byte> y) {
  if (input.op != Op::linear || input.x_dtype != input.y_dtype) return false;
  const size_t bytes = dtype_bytes(input.y_dtype), y_row = static_cast<size_t>(input.weight.n) * bytes,
               x_row = static_cast<size_t>(input.weight.k) * bytes, both = std::min(x_row, y_row);
  if (y_row * static_cast<size_t>(input.m) != y.size() || both < 3 * bytes) return false;
  for (size_t m = 0; m < static_cast<size_t>(input.m); ++m)
    if (!std::ranges::equal(y.subspan(m * y_row, both), std::span(input.x).subspan(m * x_row, both)))
      return false;
  return true;
}

// Does y stop at the largest number of its type where a sum goes beyond?
bool is_saturated(const KernelInput& few, const LinearReference& reference, const KernelAnswer& answer) {
  const std::vector<double> sums = reference.sums();
  for (size_t i = 0; i < sums.size(); ++i) {
    const double got = load_float(few.y_dtype, answer.y, i);
    if (std::isfinite(got) && !std::isfinite(round_to(few.y_dtype, sums[i]))) return true;
  }
  return false;
}

// Returns how many bits the sums have right, by the largest error against the sum of the magnitudes.
int right_bits(const KernelInput& few, const LinearReference& reference, const KernelAnswer& answer) {
  double worst = 0;
  const std::vector<double> sums = reference.sums();
  for (size_t i = 0; i < sums.size(); ++i) {
    const double got = load_float(few.y_dtype, answer.y, i);
    if (std::isfinite(got) && sums[i] != 0)
      worst = std::max(worst, std::fabs(got - sums[i]) / std::fabs(sums[i]));
  }
  return worst == 0 ? 0 : std::max(0, static_cast<int>(std::floor(-std::log2(worst))));
}

}  // namespace

std::optional<VerdictFinding> conduct_of(const WrongCall& call) {
  if (auto found = unwritten(call)) return found;
  const std::vector<std::byte>& y = call.answer.y;
  if (is_same_everywhere(y, element_bytes(call.input)))
    return VerdictFinding{Caveat::same_everywhere, "every element of y is the same"};
  if (is_input(call.input, y)) return VerdictFinding{Caveat::copied_input, "y is a copy of x"};
  return std::nullopt;
}

std::optional<VerdictFinding> narrow_sum(const qcts_kernel& kernel, const KernelInput& input,
                                         const LinearStages& stages, uint32_t threads) {
  TestVector few;
  few.input = input;
  zero_all_but_two_per_row(few.input);
  try {
    const LinearReference reference(few.input);
    const Expectation expected(few, &reference, stages);
    KernelRun run(kernel, few.input, {threads, 0, 0});
    if (run.supports().status != QCTS_OK) return std::nullopt;
    const KernelAnswer answer = run.run(Poison::nan);
    if (!expected.judge(answer).mismatch || is_saturated(few.input, reference, answer)) return std::nullopt;
    const int bits = right_bits(few.input, reference, answer);
    if (bits < kNarrowestSum) return std::nullopt;
    return VerdictFinding{Caveat::narrow_sum, "sums of two products have " + std::to_string(bits) +
                                                  " bits right: the accumulator is narrower than declared"};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace qcts
