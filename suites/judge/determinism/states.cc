// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/determinism/states.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"
#include "suites/judge/determinism/fresh_process.h"
#include "suites/judge/determinism/many_calls.h"
#include "suites/judge/determinism/neighbours.h"
#include "suites/judge/expected/judged_problem.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

constexpr int64_t kMiddleRows = 5;  // of noise, which has 1 and more too

// Returns x with the sign of one element in its middle changed, or nullopt if there is only zero and NaN.
std::optional<KernelInput> with_another_x(const KernelInput& input) {
  if (!input.has_x() || input.x.empty()) return std::nullopt;
  const DType dtype = input.op == Op::quantize ? input.weight.dtype : input.x_dtype;
  const size_t bytes = dtype_bytes(dtype), count = input.x.size() / bytes;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = (count / 2 + i) % count;
    const double value = load_float(dtype, input.x, at);
    if (!(std::fabs(value) > 0) || !std::isfinite(value)) continue;
    KernelInput other = input;
    other.x[(at + 1) * bytes - 1] ^= std::byte{0x80};
    return other;
  }
  return std::nullopt;
}

// Returns the weight with another element in the last place of a plane, or nullopt if all of its elements are
// equal. Every element that stands elsewhere in the plane is valid there too.
std::optional<KernelInput> with_another_element(const KernelInput& input, size_t plane) {
  KernelInput other = input;
  Plane& changed = other.planes[plane];
  if (changed.bytes.empty()) return std::nullopt;
  const size_t bytes = std::max<size_t>(1, dtype_bits(changed.dtype) / 8),
               last = changed.bytes.size() - bytes;
  const auto element = [&](size_t at) { return std::span(changed.bytes).subspan(at, bytes); };
  for (size_t at = last; at >= bytes;) {
    at -= bytes;
    if (std::ranges::equal(element(at), element(last))) continue;
    std::ranges::copy(element(at), element(last).begin());
    return other;
  }
  return std::nullopt;
}

// Exchanges the first word of 16 bytes with the last one that differs: a sum over the bytes stays as it is,
// and so does each four of a 2:4 sparse weight. Returns false if all words are equal.
bool exchange_words(std::vector<std::byte>& bytes) {
  constexpr size_t kWord = 16;
  const auto word = [&](size_t i) { return std::span(bytes).subspan(i * kWord, kWord); };
  for (size_t last = bytes.size() / kWord; last-- > 1;)
    if (!std::ranges::equal(word(0), word(last))) {
      std::ranges::swap_ranges(word(0), word(last));
      return true;
    }
  return false;
}

bool holds_codes(const KernelInput& input, const Plane& plane) {
  return plane.name == name_of_codes(input.planes);
}

// The planes of which a single element may change: codes and their parameters. The places of a 2:4 sparse
// weight belong to each other.
bool may_change_alone(const KernelInput& input, const Plane& plane) {
  return input.op != Op::quantize && input.op != Op::quantize_activation &&
         input.scheme->quantizes_weight() && plane.name != "meta" &&
         (holds_codes(input, plane) ||
          (input.op != Op::unpack &&
           (plane.name.find("scale") != plane.name.npos || plane.name.find("zero") != plane.name.npos)));
}

// Returns the weight with other data between its first and last row, or nullopt if it has no such rows or is
// packed. Where the codes do not lie in rows, the half in their middle changes.
std::optional<KernelInput> with_another_middle(const KernelInput& input) {
  KernelInput other = input;
  const auto n = static_cast<size_t>(input.weight.n);
  bool is_other = false;
  if (n < 3 || input.op == Op::unpack) return std::nullopt;
  for (const Plane& plane : random_planes(*input.scheme, input.weight, kOtherSeed)) {
    const auto kept = std::ranges::find(other.planes, plane.name, &Plane::name);
    if (kept == other.planes.end() || kept->bytes.size() != plane.bytes.size()) continue;
    const bool has_rows = !plane.shape.empty() && plane.shape.front() == input.weight.n;
    if (!has_rows && !holds_codes(input, *kept)) continue;
    const size_t ends = plane.bytes.size() / (has_rows ? n : 4);
    std::copy(plane.bytes.begin() + static_cast<ptrdiff_t>(ends),
              plane.bytes.end() - static_cast<ptrdiff_t>(ends),
              kept->bytes.begin() + static_cast<ptrdiff_t>(ends));
    is_other = true;
  }
  return is_other ? std::optional(std::move(other)) : std::nullopt;
}

// Returns the same problem with its y in another type; nullopt if the planes would then have other types too.
std::optional<KernelInput> with_another_type(const KernelInput& input, DType dtype) {
  if (!input.has_y() || dtype == input.y_type()) return std::nullopt;
  KernelInput other = input;
  if (input.op == Op::linear) {
    other.y_dtype = dtype;
    return other;
  }
  other.weight.dtype = dtype;
  if (input.scheme->refusal(other.weight)) return std::nullopt;
  const std::vector<PlaneSpec> specs = input.scheme->plane_specs(other.weight);
  const bool has_same_planes =
      std::ranges::equal(specs, input.planes, [](const PlaneSpec& spec, const Plane& plane) {
        return spec.name == plane.name && spec.dtype == plane.dtype && spec.shape == plane.shape;
      });
  return has_same_planes ? std::optional(std::move(other)) : std::nullopt;
}

// Returns the bias in reverse order, or nullopt if that is the same.
std::optional<KernelInput> with_another_bias(const KernelInput& input) {
  const size_t bytes = dtype_bytes(input.bias_dtype), count = input.bias.size() / bytes;
  KernelInput other = input;
  for (size_t i = 0; i < count; ++i)
    std::copy_n(input.bias.begin() + static_cast<ptrdiff_t>(i * bytes), bytes,
                other.bias.begin() + static_cast<ptrdiff_t>((count - 1 - i) * bytes));
  return other.bias == input.bias ? std::nullopt : std::optional(std::move(other));
}

// Returns the bias with zeros at both ends, or nullopt if nothing is left of it between them.
std::optional<KernelInput> with_bias_between_zeros(const KernelInput& input) {
  const auto bytes = static_cast<std::ptrdiff_t>(dtype_bytes(input.bias_dtype));
  KernelInput other = input;
  if (std::ssize(other.bias) < 3 * bytes) return std::nullopt;
  std::fill_n(other.bias.begin(), bytes, std::byte{0});
  std::fill_n(other.bias.end() - bytes, bytes, std::byte{0});
  return other;
}

class StatesJudge {
 public:
  StatesJudge(const Case& c, const JudgeContext& context, const TestVector& test_vector, Verdict& verdict)
      : case_(c),
        context_(context),
        kernel_(*c.implementation->kernel),
        verdict_(verdict),
        given_(test_vector, kernel_),
        other_(make_test_vector(c, context.seed + kOtherSeed, context.played), kernel_),
        run_(kernel_, given_.input(), {}),
        other_run_(kernel_, other_.input(), {}) {}

  void run() {
    if (run_.supports().status != QCTS_OK || other_run_.supports().status != QCTS_OK) return;
    run_.prepare();
    other_run_.prepare();
    if (!is_right(run_, given_, "after another weight was prepared") ||
        !is_right(other_run_, other_, "after a call with other data") ||
        !is_right(run_, given_, "after a call with other data"))
      return;
    judge_replays();
    if (verdict_.status != Status::pass) return;
    run_.keep_workspace();
    if (!is_right(run_, given_, "with the workspace as the last call left it")) return;
    judge_another_x();
    if (verdict_.status == Status::pass) judge_another_weight();
    if (verdict_.status == Status::pass && asks_fresh_process())
      judge_fresh_process(case_, context_, given_, run_.run(Poison::zeros), verdict_);
    if (verdict_.status == Status::pass) judge_another_type();
  }

 private:
  // One shape for many rows is enough: what a process keeps of a problem reaches every shape.
  bool asks_fresh_process() const {
    const Synthetic& synthetic = *case_.synthetic();
    return is_dealt(case_, context_.costly_share) && synthetic.generator == Generator::noise &&
           (!synthetic.is_other_dtype || asks_many_calls(case_, context_)) &&
           (kernel_.claims & QCTS_CLAIM_EMULATED) == 0 && is_first_shape(case_) &&
           (case_.id.op != Op::linear || (synthetic.m != 1 && synthetic.m != kMiddleRows));
  }

  void judge_another_x() {
    std::optional<KernelInput> changed = with_another_x(given_.input());
    if (!changed) return;
    const JudgedProblem of_changed(test_vector_for(*std::move(changed)), kernel_);
    run_.set_x(of_changed.input().x);
    if (!is_right(run_, of_changed, "when one element of x has changed at the same address")) return;
    run_.set_x(given_.input().x);
    if (!is_right(run_, given_, "when x is again as it was at the same address")) return;
    if (std::optional<KernelInput> larger = with_a_larger_x(given_.input())) {
      const JudgedProblem of_larger(test_vector_for(*std::move(larger)), kernel_);
      run_.set_x(of_larger.input().x);
      if (!is_right(run_, of_larger, "when x has another largest element at the same address")) return;
      run_.set_x(given_.input().x);
    }
    KernelInput exchanged = given_.input();
    if (exchange_words(exchanged.x)) {
      const JudgedProblem of_exchanged(test_vector_for(std::move(exchanged)), kernel_);
      run_.set_x(of_exchanged.input().x);
      if (!is_right(run_, of_exchanged, "when two parts of x have changed places")) return;
      run_.set_x(given_.input().x);
    }
    for (std::optional<KernelInput> biased :
         {with_another_bias(given_.input()), with_bias_between_zeros(given_.input())}) {
      if (!biased) continue;
      const JudgedProblem of_biased(test_vector_for(*std::move(biased)), kernel_);
      run_.set_input("bias", of_biased.input().bias);
      if (!is_right(run_, of_biased, "when the bias has changed at the same address")) return;
      run_.set_input("bias", given_.input().bias);
    }
  }

  // An answer that is kept by the content of its inputs is of the wrong type for the next problem. One other
  // type is enough for linear, whose answers are slow to judge.
  void judge_another_type() {
    if ((kernel_.claims & QCTS_CLAIM_EMULATED) != 0) return;
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      std::optional<KernelInput> other = with_another_type(given_.input(), dtype);
      if (!other) continue;
      const JudgedProblem of_other(test_vector_for(*std::move(other)), kernel_);
      KernelRun run(kernel_, of_other.input(), {});
      if (run.supports().status != QCTS_OK) continue;
      const std::string when = "when the same data is asked for in " + std::string(dtype_name(dtype)) +
                               " and " + std::string(dtype_name(given_.input().y_type()));
      const KernelAnswer answer = run.run(Poison::zeros);
      if (of_other.judge(answer)) {
        fail(answer, of_other, when, is_wrong_with_new_data(dtype));
        return;
      }
      if (!is_right(run_, given_, when) || given_.input().op == Op::linear) return;
    }
  }

  // One element of a plane changes at the same address, two parts of the codes change places, and then all
  // rows but the first and the last change. Each follows a call with the given weight. A prepared weight is
  // prepared again.
  void judge_another_weight() {
    const KernelInput& input = given_.input();
    for (size_t plane = 0; plane < input.planes.size(); ++plane) {
      if (!may_change_alone(input, input.planes[plane])) continue;
      const bool is_of_codes = holds_codes(input, input.planes[plane]);
      if (std::optional<KernelInput> changed = with_another_element(input, plane);
          changed && !is_right_with(*std::move(changed),
                                    "once the weight's last " +
                                        std::string(is_of_codes ? "code" : input.planes[plane].name) +
                                        " changed at the same address"))
        return;
      KernelInput exchanged = input;
      // The elements of a sparse weight belong to their places.
      if (is_of_codes && !is_sparse(*input.scheme, input.weight) &&
          exchange_words(exchanged.planes[plane].bytes) &&
          !is_right_with(std::move(exchanged), "once two parts of the weight's codes changed places"))
        return;
    }
    if (input.op == Op::quantize || input.op == Op::quantize_activation || !input.scheme->quantizes_weight())
      return;
    if (std::optional<KernelInput> other = with_another_middle(input))
      is_right_with(*std::move(other), "once the weight changed between its first and last row");
  }

  // Judges a call with another weight, and then one with the given weight at the same addresses.
  bool is_right_with(KernelInput other, const std::string& when) {
    write_weight(other);
    if (!is_right(run_, JudgedProblem(test_vector_for(std::move(other)), kernel_), when)) return false;
    write_weight(given_.input());
    return is_right(run_, given_, "once the weight is again as it was at the same address");
  }

  void write_weight(const KernelInput& input) {
    const std::optional<Planes> packed = packed_planes(input);
    for (const Plane& plane : packed ? *packed : input.planes) run_.set_input(plane.name, plane.bytes);
    run_.prepare_again();
  }

  // Replays one capture with other data at its addresses, and then with those of the capture.
  void judge_replays() {
    if (run_.problem().device == 0 || (kernel_.claims & QCTS_CLAIM_CAPTURABLE) == 0) return;
    run_.capture();
    const JudgedProblem replaced(test_vector_for(with_data_of(other_.input())), kernel_);
    for (const JudgedProblem* data : {&replaced, &given_}) {
      write(data->input());
      if (!judge(run_.replay(Poison::zeros), *data, "when a graph is replayed with other data")) return;
    }
  }

  // Returns the given input with the data of another. A prepared weight stays as it is.
  KernelInput with_data_of(const KernelInput& other) const {
    KernelInput input = given_.input();
    input.x = other.x;
    input.bias = other.bias;
    if (run_.prepared_bytes() == 0) input.planes = other.planes;
    return input;
  }

  void write(const KernelInput& input) {
    if (!input.x.empty()) run_.set_x(input.x);
    if (!input.bias.empty()) run_.set_input("bias", input.bias);
    if (run_.prepared_bytes() == 0) write_weight(input);
  }

  bool is_right(KernelRun& run, const JudgedProblem& expected, const std::string& when) {
    return judge(run.run(Poison::zeros), expected, when);
  }

  bool judge(const KernelAnswer& answer, const JudgedProblem& expected, const std::string& when) {
    if (!expected.judge(answer)) {
      before_ = answer;
      return true;
    }
    fail(answer, expected, when, is_wrong_alone(expected, answer));
    return false;
  }

  void fail(const KernelAnswer& answer, const JudgedProblem& expected, const std::string& when,
            bool is_wrong_by_itself) {
    verdict_.mismatch = expected.judge(answer);
    verdict_.status = Status::fail;
    const bool is_stale = before_.y == answer.y && !answer.y.empty();
    if (is_stale) verdict_.findings.push_back({Caveat::earlier_answer, ""});
    const std::string first =
        verdict_.mismatch->where + ": want " + verdict_.mismatch->want + ", got " + verdict_.mismatch->got;
    verdict_.reason = !is_stale && is_wrong_by_itself
                          ? first + "; with data that the first calls did not have"
                          : "wrong " + when + ": " + first;
  }

  // Returns true if a separate call, with its own buffers and if possible in a separate process, gives the
  // same wrong answer: then the data are the reason, and nothing that the kernel has seen before.
  bool is_wrong_alone(const JudgedProblem& expected, const KernelAnswer& answer) const {
    const HostedProvider::Kernel* hosted = HostedProvider::kernel_of(kernel_);
    const std::unique_ptr<HostedProvider> host = hosted ? hosted->owner->started_anew({}, {}) : nullptr;
    KernelRun alone(host ? *host->table().kernels[hosted->index] : kernel_, expected.input(), {});
    if (alone.supports().status != QCTS_OK) return false;
    alone.prepare();
    const KernelAnswer again = alone.run(Poison::zeros);
    return is_same(again, answer);
  }

  // Returns true if data that the kernel has never seen are answered wrongly in this type, too. The same data
  // would not show it: an answer that is kept by content is wrong for them again.
  bool is_wrong_with_new_data(DType dtype) const {
    const JudgedProblem new_data(make_test_vector(case_, context_.seed + 2 * kOtherSeed, context_.played),
                                 kernel_);
    std::optional<KernelInput> input = with_another_type(new_data.input(), dtype);
    if (!input) return false;
    const JudgedProblem expected(test_vector_for(*std::move(input)), kernel_);
    KernelRun run(kernel_, expected.input(), {});
    if (run.supports().status != QCTS_OK) return false;
    return expected.judge(run.run(Poison::zeros)).has_value();
  }

  const Case& case_;
  const JudgeContext& context_;
  const qcts_kernel& kernel_;
  Verdict& verdict_;
  const JudgedProblem given_, other_;
  KernelRun run_, other_run_;
  KernelAnswer before_;  // of the previous call
};

}  // namespace

std::optional<KernelInput> with_a_larger_x(const KernelInput& input) {
  if (!input.has_x() || input.x.empty()) return std::nullopt;
  const DType dtype = input.op == Op::quantize ? input.weight.dtype : input.x_dtype;
  std::optional<size_t> last;
  double largest = 0;
  for (size_t i = 0; i < input.x.size() / dtype_bytes(dtype); ++i) {
    const double value = std::fabs(load_float(dtype, input.x, i));
    if (value > 0) last = i;
    largest = std::max(largest, value);
  }
  if (!last || 2 * largest > float_format(dtype).max) return std::nullopt;
  KernelInput other = input;
  store_float(dtype, other.x, *last, 2 * largest);
  return other;
}

void judge_states(const Case& c, const JudgeContext& context, const TestVector& test_vector,
                  Verdict& verdict) {
  StatesJudge(c, context, test_vector, verdict).run();
}

}  // namespace qcts
