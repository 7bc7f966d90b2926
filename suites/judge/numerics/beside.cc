// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/numerics/beside.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"
#include "suites/judge/determinism/fresh_process.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/judge/numerics/row_numbers.h"
#include "suites/judge/replay.h"
#include "suites/providers/buffer_trials.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

// The numbers of rows of which the input has more. Other inputs ask most of them of linear, but not under
// each policy.
std::vector<int64_t> fewer_rows(const Synthetic& synthetic, Op op) {
  const bool is_linear = op == Op::linear;
  if (synthetic.generator == Generator::noise && synthetic.m == 5 && !is_linear) return {2, 3, 4};
  if (synthetic.generator == Generator::rows && synthetic.m == 17 && !is_linear)
    return {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  if (synthetic.generator == Generator::rows && synthetic.m == 33 && is_linear)
    return {2, 3, 4, 5, 8, 16, 17, 24, 32};
  if (synthetic.generator == Generator::tiles && synthetic.m == 37 && !is_linear) return {24, 32, 33};
  return {};
}

void add_fewer_rows(const Synthetic& synthetic, const KernelInput& input, std::vector<ProblemBeside>& out) {
  for (const int64_t rows : fewer_rows(synthetic, input.op)) {
    KernelInput fewer = input;
    fewer.m = rows;
    fewer.x.resize(input.x.size() / static_cast<size_t>(input.m) * static_cast<size_t>(rows));
    out.push_back({std::move(fewer), "with only the first " + std::to_string(rows) + " rows of x"});
  }
}

// All of x, or the weight of quantize: 0 or -0.
void add_zeros(const KernelInput& input, std::vector<ProblemBeside>& out) {
  const std::string whole = input.op == Op::quantize ? "a weight" : "an x";
  const DType dtype = input.op == Op::quantize ? input.weight.dtype : input.x_dtype;
  for (const double zero : {0.0, -0.0}) {
    KernelInput zeros = input;
    for (uint64_t i = 0; i < zeros.x.size() / dtype_bytes(dtype); ++i) store_float(dtype, zeros.x, i, zero);
    out.push_back({std::move(zeros), "with " + whole + " of only " + (std::signbit(zero) ? "-0" : "0")});
  }
}

// Replaces the planes of the weight by those of another weight. Those of the policy follow them and stay.
bool set_weight(const Floats& weight, KernelInput& input) {
  try {
    Planes planes = quantized(*input.scheme, input.weight, weight.bytes());
    if (input.op == Op::unpack) planes = input.scheme->pack(planes, input.weight, input.layout);
    std::ranges::move(planes, input.planes.begin());
    return true;
  } catch (const std::invalid_argument&) {
    return false;  // the scheme cannot represent it
  }
}

// Groups from about the largest number to about its negative, whose difference may have no place in the type.
void add_widest_ranges(const KernelInput& input, std::vector<ProblemBeside>& out) {
  constexpr double kShares[] = {1, 0.75, 0.5, 0.53125};
  const int64_t group = group_length(*input.scheme, input.weight);
  Floats w(input.has_x() && input.op != Op::quantize ? input.x_dtype : input.weight.dtype,
           input.has_rows_of_x() ? input.m : input.weight.n, input.weight.k);
  const double largest = float_format(w.dtype).max;
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c)
      w.at(r, c) = (c % 2 == 0 ? 1 : -1) * largest * kShares[(r + c / group + (c % 7 == 0)) % 4];
  KernelInput wide = input;
  if (input.has_x())
    wide.x = w.bytes();
  else if (!set_weight(w, wide))
    return;
  out.push_back({std::move(wide), "with the largest numbers of both signs in every group"});
}

// Groups from the smallest normal numbers to the largest, whose scales only a float of as wide a range holds.
void add_every_magnitude(const KernelInput& input, std::vector<ProblemBeside>& out) {
  const WeightShape& shape = input.weight;
  const int64_t group = group_length(*input.scheme, shape);
  const int most = shape.dtype == DType::float16 ? 12 : 100, steps = 2 * most + 1;
  Floats w = noise_weight(*input.scheme, shape, 1);
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c)
      w.at(r, c) = std::ldexp(w.at(r, c), static_cast<int>(37 * (r + c / group) % steps) - most);
  KernelInput wide = input;
  if (set_weight(w, wide)) out.push_back({std::move(wide), "with a weight of every magnitude"});
}

// Every third group is large, and x is zero there: y is that of groups whose scales are far below the row's.
void add_uneven_groups(const KernelInput& input, std::vector<ProblemBeside>& out) {
  constexpr int kExponents[] = {-7, -12, -13, -14};
  const WeightShape& shape = input.weight;
  const int64_t group = input.scheme->group();
  if (group == 0 || shape.k < 2 * group || shape.dtype == DType::float16) return;
  KernelInput uneven = input;
  Floats w = noise_weight(*input.scheme, shape, 1);
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c)
      if (const int64_t g = c / group; g % 3 != 0)
        w.at(r, c) = std::ldexp(w.at(r, c), kExponents[(r + g) % 4]);
  if (!set_weight(w, uneven)) return;
  uneven.bias.clear();  // it would hide small answers
  for (int64_t i = 0; input.op == Op::linear && i < input.m * shape.k; ++i)
    if (i % shape.k / group % 3 == 0) store_float(input.x_dtype, uneven.x, static_cast<uint64_t>(i), 0);
  out.push_back({std::move(uneven), "with groups that are far smaller than others of their row"});
}

// Returns the kernel's run in the first buffers that it accepts, or nullptr.
std::unique_ptr<KernelRun> accepted_run(const qcts_kernel& kernel, const KernelInput& input,
                                        uint32_t threads) {
  for (const RunOptions& options : irregular_buffers(input, threads))
    if (auto run = std::make_unique<KernelRun>(kernel, input, options); run->supports().status == QCTS_OK)
      return run;
  return nullptr;
}

// The largest inputs, for which a kernel may start threads that small ones do not need.
bool shows_threads(const Synthetic& synthetic) {
  switch (synthetic.generator) {
    case Generator::large:
    case Generator::larger:
    case Generator::panels:
      return true;
    case Generator::models:
      return synthetic.m == 33;
    default:
      return false;
  }
}

// Calls the kernel with one thread, in a host that was never asked for more, and returns what the calls leave
// behind or which threads they use, or "".
std::string effect_of_large(const qcts_kernel& kernel, const KernelInput& input) {
  const HostedProvider::Kernel* hosted = HostedProvider::kernel_of(kernel);
  if (hosted == nullptr || hosted->owner->device() != nullptr) return "";
  const std::unique_ptr<HostedProvider> host = hosted->owner->started_anew();
  const qcts_kernel& alone = *host->table().kernels[hosted->index];
  KernelRun run(alone, input, {});
  return run.supports().status == QCTS_OK ? effect_of_few_calls(alone, run) : "";
}

// The case's own problem was right. Judged like a case of its own, this one gets a cause too.
void explain_beside(const std::string& what, const qcts_kernel& kernel, const TestVector& test_vector,
                    const JudgeContext& context, Verdict& verdict) {
  Verdict own;
  judge_test_vector(kernel, test_vector, context, own);
  const bool is_same = own.status == Status::fail && own.mismatch.has_value();
  verdict.status = Status::fail;
  if (is_same) {
    verdict.mismatch = own.mismatch;
    verdict.findings.insert(verdict.findings.end(), own.findings.begin(), own.findings.end());
  }
  verdict.reason = "right on the case's own data, wrong " + what + ": " +
                   (is_same ? own.reason
                            : "in irregular buffers: " + verdict.mismatch->where + ": want " +
                                  verdict.mismatch->want + ", got " + verdict.mismatch->got);
}

}  // namespace

std::vector<ProblemBeside> problems_beside(const Case& c, const KernelInput& input) {
  std::vector<ProblemBeside> out;
  if (c.synthetic() == nullptr || is_sparse(*c.scheme, input.weight)) return out;
  const Synthetic& synthetic = *c.synthetic();
  const bool is_linear = input.op == Op::linear, is_noise = synthetic.generator == Generator::noise;
  if (input.has_rows_of_x()) add_fewer_rows(synthetic, input, out);
  if (synthetic.generator == Generator::zero_rows && input.has_x()) add_zeros(input, out);
  if (synthetic.generator == Generator::extremes && input.has_x() && !is_linear)
    add_widest_ranges(input, out);
  if (synthetic.generator == Generator::all_codes) {
    add_every_magnitude(input, out);
    if (!input.has_x()) add_widest_ranges(input, out);
  }
  if (is_noise && (input.op == Op::dequantize || (is_linear && (input.m == 1 || input.m == 7))))
    add_uneven_groups(input, out);
  return out;
}

void judge_beside(const Case& c, const JudgeContext& context, const KernelInput& input, Verdict& verdict) {
  const qcts_kernel& kernel = *c.implementation->kernel;
  if ((kernel.claims & QCTS_CLAIM_EMULATED) != 0) return;
  for (ProblemBeside& problem : problems_beside(c, input)) {
    const TestVector test_vector = test_vector_for(std::move(problem.input));
    if (test_vector.is_refused) continue;
    const auto run = accepted_run(kernel, test_vector.input, context.threads);
    if (!run) continue;
    std::optional<LinearReference> reference;
    if (c.id.op == Op::linear) reference.emplace(test_vector.input);
    const Expectation expectation(test_vector, reference ? &*reference : nullptr,
                                  declared_stages(kernel, test_vector.input.x_dtype));
    verdict.mismatch = expectation.judge(run->run(Poison::nan)).mismatch;
    if (!verdict.mismatch) continue;
    explain_beside(problem.what, kernel, test_vector, context, verdict);
    return;
  }
  judge_row_numbers(c, context, input, verdict);
  if (verdict.status != Status::pass) return;
  if (c.synthetic() == nullptr || !shows_threads(*c.synthetic()) || !is_dealt(c, context.costly_share))
    return;
  verdict.reason = effect_of_large(kernel, input);
  if (!verdict.reason.empty()) verdict.status = Status::fail;
}

}  // namespace qcts
