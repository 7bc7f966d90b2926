// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/determinism/fresh_process.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "suites/inputs/inputs.h"
#include "suites/judge/determinism/concurrent_calls.h"
#include "suites/judge/determinism/many_calls.h"
#include "suites/judge/determinism/neighbours.h"
#include "suites/providers/footprint.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

using Settings = std::vector<std::string>;

// Variables by which other libraries choose the arithmetic or the threads of their kernels. Those that choose
// instructions or print are left out: who sets them wants that. HostProcess sets OMP_NUM_THREADS.
const Settings kOtherSettings = {
    "OMP_DYNAMIC=true",
    "OMP_SCHEDULE=dynamic,1",
    "OMP_MAX_ACTIVE_LEVELS=2",
    "KMP_BLOCKTIME=0",
    "KMP_LIBRARY=throughput",
    "MKL_NUM_THREADS=3",
    "MKL_DYNAMIC=FALSE",
    "OPENBLAS_NUM_THREADS=3",
    "GOTO_NUM_THREADS=3",
    "BLIS_NUM_THREADS=3",
    "DNNL_DEFAULT_FPMATH_MODE=ANY",
    "ONEDNN_DEFAULT_FPMATH_MODE=BF16",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY=1",
    "TORCH_NUM_THREADS=3",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1",
    "NVIDIA_TF32_OVERRIDE=1",
    "CUBLAS_WORKSPACE_CONFIG=:0:0",
    "VLLM_MARLIN_USE_ATOMIC_ADD=1",
    "VLLM_MARLIN_INPUT_DTYPE=fp8",
    "VLLM_CPU_SGL_KERNEL=1",
    "MARLIN_USE_FP32_REDUCE=0",
    "GGML_CUDA_FORCE_CUBLAS=1",
    "GGML_CUDA_F16=1",
    "GGML_N_THREADS=3",
    "FBGEMM_NO_JK=1",
    "TF_ENABLE_ONEDNN_OPTS=1",
    "ITEX_FP32_MATH_MODE=BF16",
    "XNN_FORCE_FP16=1",
    "FLASHINFER_USE_CUDA_NORM=1",
};

std::string text_of(const Mismatch& mismatch) {
  return mismatch.where + ": want " + mismatch.want + ", got " + mismatch.got;
}

// Returns the first kernel of the table for the problem, of the same variant if there is one.
const qcts_kernel* kernel_for(const qcts_provider& table, const Case& asked, std::string_view variant) {
  const qcts_kernel* found = nullptr;
  for (uint32_t i = 0; i < table.n_kernels; ++i) {
    const qcts_kernel* kernel = table.kernels[i];
    if (kernel == nullptr || kernel->op != abi_op(asked.id.op)) continue;
    const Implementation implementation{table.name, kernel};
    if (implementation.family() != asked.scheme->family() ||
        !implementation.takes(asked.activation().name()) || !implementation.reads(asked.layout().name()))
      continue;
    if (kernel->variant == variant) return kernel;
    if (found == nullptr && (kernel->claims & QCTS_CLAIM_EMULATED) == 0) found = kernel;
  }
  return found;
}

constexpr int64_t kRowsOfLong = 3;  // of x

// Returns a shape with more than 2,048 and 4,096 elements in a row, if the scheme has one.
std::optional<WeightShape> long_shape_of(const Case& c) {
  constexpr int64_t kLong = 4096;
  const int64_t unit = std::max<int64_t>(c.scheme->group(), 32);
  const DType dtype = c.synthetic()->weight.dtype;
  for (const WeightShape& shape :
       {WeightShape{dtype, 9, kLong + unit}, WeightShape{dtype, 128, kLong + 1024}})
    if (!c.scheme->refusal(shape) && !c.scheme->refusal(shape, c.layout())) return shape;
  return std::nullopt;
}

// Returns a shape with many rows of three groups, or in whole blocks of 128 rows if the scheme or the layout
// needs those.
std::optional<WeightShape> shape_of_many_rows(const Case& c) {
  constexpr int64_t kMaxElements = int64_t{1} << 19, kBlock = 128;
  const int64_t k = 3 * std::max<int64_t>(c.scheme->group(), 16);
  int64_t n = 4112;
  while (n > 500 && n * k > kMaxElements) n /= 2;
  const DType dtype = c.synthetic()->weight.dtype;
  const int64_t blocks = n / kBlock * kBlock;
  for (const WeightShape& shape : {WeightShape{dtype, n, k}, WeightShape{dtype, blocks, k},
                                   WeightShape{dtype, blocks, k / 3 * 4}, WeightShape{dtype, blocks, 256}})
    if (!c.scheme->refusal(shape) && !c.scheme->refusal(shape, c.layout())) return shape;
  return std::nullopt;
}

class FreshProcess {
 public:
  FreshProcess(const Case& c, const JudgeContext& context, const JudgedProblem& given,
               const KernelAnswer& answer, Verdict& verdict)
      : case_(c),
        context_(context),
        hosted_(HostedProvider::kernel_of(*c.implementation->kernel)),
        given_(given),
        answer_(answer),
        verdict_(verdict) {}

  void run() {
    const std::unique_ptr<HostedProvider> host = started(kOtherSettings);
    const qcts_kernel& kernel = kernel_in(host.get());
    KernelRun run(kernel, given_.input(), {});
    if (run.supports().status != QCTS_OK) return;
    if (host && asks_many_calls(case_, context_) && has_fault_of_first_calls(kernel)) return;
    if (const std::string wrong = fault_of(run.run(Poison::zeros)); !wrong.empty())
      return fail(why_alone() + wrong);
    judge_neighbours(kernel, host.get(), run);
    if (verdict_.status != Status::pass || !host || !asks_many_calls(case_, context_)) return;
    judge_concurrent_calls(kernel);
    if (verdict_.status == Status::pass) judge_threads_on_many_rows(kernel);
    if (verdict_.status != Status::pass) return;
    const auto fault = fault_of_many_calls(case_, context_, kernel, given_.input());
    if (!fault) return;
    verdict_.mismatch = fault->mismatch;
    fail(fault->reason);
  }

 private:
  void fail(std::string reason) {
    verdict_.status = Status::fail;
    verdict_.reason = std::move(reason);
  }

  // Returns nullptr for a kernel of this process.
  std::unique_ptr<HostedProvider> started(const Settings& settings) const {
    return hosted_ ? hosted_->owner->started_anew({}, settings) : nullptr;
  }
  const qcts_kernel& kernel_in(const HostedProvider* host) const {
    return host ? *host->table().kernels[hosted_->index] : *case_.implementation->kernel;
  }

  // Returns what is wrong with an answer to the given problem, or "".
  std::string fault_of(const KernelAnswer& answer) {
    verdict_.mismatch = given_.judge(answer);
    if (verdict_.mismatch) return text_of(*verdict_.mismatch);
    if ((case_.implementation->kernel->claims & QCTS_CLAIM_DETERMINISTIC) == 0 || answer.y == answer_.y)
      return {};
    const KernelInput& input = given_.input();
    const Comparison compared = compare_bitwise(input.y_type(), answer_.y, answer.y);
    if (compared.equal()) return {};
    const int64_t columns = input.op == Op::linear ? input.weight.n : input.weight.k;
    verdict_.mismatch = mismatch_of(compared, place_in_matrix("y", compared.first, columns, 0));
    return "claims to be deterministic, but " + text_of(*verdict_.mismatch);
  }

  // Says what it is in a separate process that makes the given problem's first answer wrong.
  std::string why_alone() {
    const auto is_wrong_with = [&](const Settings& settings) {
      const std::unique_ptr<HostedProvider> host = started(settings);
      KernelRun run(kernel_in(host.get()), given_.input(), {});
      return run.supports().status == QCTS_OK && !fault_of(run.run(Poison::zeros)).empty();
    };
    const std::optional<Mismatch> found = verdict_.mismatch;
    std::string why = "wrong in the first call of a process, right in a later one: ";
    if (hosted_ && !is_wrong_with({})) {
      Settings blamed = kOtherSettings;
      while (blamed.size() > 1) {
        const auto middle = blamed.begin() + std::ssize(blamed) / 2;
        const Settings first(blamed.begin(), middle), second(middle, blamed.end());
        if (is_wrong_with(first))
          blamed = first;
        else if (is_wrong_with(second))
          blamed = second;
        else
          break;
      }
      why = "wrong with " + blamed.front() +
            (blamed.size() > 1 ? " and " + std::to_string(blamed.size() - 1) + " other variables" : "") +
            " in the environment, right without: ";
    }
    verdict_.mismatch = found;
    return why;
  }

  // Runs each other problem that the provider serves, and the given one again. The process has served nothing
  // before the given one, because what the first call leaves is kept by all that follow.
  void judge_neighbours(const qcts_kernel& kernel, const HostedProvider* host, KernelRun& given) {
    std::string served;
    for (const Neighbour& neighbour : neighbours_of(case_)) {
      const bool is_own = neighbour.asked.id.op == case_.id.op;
      const qcts_kernel* asked = is_own ? &kernel
                                 : host ? kernel_for(host->table(), neighbour.asked, kernel.variant)
                                        : nullptr;
      if (asked == nullptr) continue;
      const auto make = [&] {
        return neighbour.has_no_bias ? without_bias()
                                     : make_test_vector(neighbour.asked, context_.seed, context_.played);
      };
      const JudgedProblem other(
          context_.test_vectors ? context_.test_vectors->beside(neighbour.what, make) : make(), *asked);
      KernelRun run(*asked, other.input(), {});
      if (other.is_refused() || run.supports().status != QCTS_OK) continue;
      if ((verdict_.mismatch = other.judge(run.run(Poison::zeros))))
        return fail(why_beside(neighbour, other) + text_of(*verdict_.mismatch));
      if (const std::string wrong = fault_of(given.run(Poison::zeros)); !wrong.empty())
        return fail("right in a separate process, wrong after a problem of " + neighbour.what + ": keeps " +
                    std::string(neighbour.kept) + " of an earlier problem; " + wrong);
    }
  }

  // The first calls of a process at the same time.
  bool has_fault_of_first_calls(const qcts_kernel& kernel) {
    if ((kernel.claims & QCTS_CLAIM_SCHEDULES) != 0) return false;
    const JudgedProblem other(with_other_data(case_, context_, given_.input()), kernel);
    const auto fault = fault_of_concurrent_calls(kernel, {&given_, &other}, Overlap::from_the_first);
    if (!fault) return false;
    const std::unique_ptr<HostedProvider> host = started(kOtherSettings);
    const JudgedProblem& problem = fault->caller == 0 ? given_ : other;
    KernelRun alone(kernel_in(host.get()), problem.input(), {});
    const bool is_right_alone = !problem.judge(alone.run(Poison::zeros));
    verdict_.mismatch = fault->mismatch;
    fail(*fault, is_right_alone       ? "wrong when the first two calls of a process are concurrent: "
                 : fault->caller == 0 ? why_alone()
                                      : "wrong in a separate process, with other data: ");
    return true;
  }

  // Calls with long rows at the same time.
  void judge_concurrent_calls(const qcts_kernel& kernel) {
    if ((kernel.claims & QCTS_CLAIM_SCHEDULES) != 0) return;
    const std::optional<WeightShape> shape = long_shape_of(case_);
    if (!shape) return;
    const Case with_long_rows = with_noise_of(case_, *shape, kRowsOfLong);
    const JudgedProblem first(make_test_vector(with_long_rows, context_.seed, context_.played), kernel),
        second(with_other_data(with_long_rows, context_, first.input()), kernel);
    KernelRun asked(kernel, first.input(), {});
    if (first.is_refused() || asked.supports().status != QCTS_OK) return;
    if (const auto fault = fault_of_concurrent_calls(kernel, {&first, &second}, Overlap::in_batches))
      fail(*fault, std::string(fault->is_alone ? "wrong" : "wrong while another thread calls the kernel") +
                       ", in a problem of n " + std::to_string(shape->n) + ", k " + std::to_string(shape->k) +
                       ": ");
  }

  // On a small weight, each thread ends before the next one starts, and a write into the next thread's part
  // is overwritten.
  void judge_threads_on_many_rows(const qcts_kernel& kernel) {
    constexpr int kRepeats = 6;
    if ((kernel.claims & QCTS_CLAIM_SCHEDULES) != 0 || case_.id.op == Op::linear) return;
    const std::optional<WeightShape> shape = shape_of_many_rows(case_);
    if (!shape) return;
    KernelInput input =
        make_test_vector(with_noise_of(case_, *shape, shape->n), context_.seed, context_.played).input;
    // The last thread finds the largest element.
    if (std::optional<KernelInput> larger = with_a_larger_x(input)) input = *std::move(larger);
    const JudgedProblem problem(test_vector_for(std::move(input)), kernel);
    std::optional<KernelAnswer> right;
    for (const uint32_t threads : {1u, 2u, 3u, 67u}) {
      KernelRun run(kernel, problem.input(), {.threads = threads});
      if (problem.is_refused() || run.supports().status != QCTS_OK) return;
      for (int i = 0; i < (threads == 1 ? 1 : kRepeats); ++i) {
        KernelAnswer answer = run.run(Poison::zeros);
        if (right && is_same(*right, answer)) continue;
        if ((verdict_.mismatch = problem.judge(answer)))
          return fail("wrong with " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
                      ", in a problem of n " + std::to_string(shape->n) + ", k " + std::to_string(shape->k) +
                      ": " + text_of(*verdict_.mismatch));
        right = std::move(answer);
      }
    }
  }

  void fail(const ConcurrentFault& fault, const std::string& when) {
    verdict_.mismatch = fault.mismatch;
    fail(when + text_of(fault.mismatch));
  }

  TestVector without_bias() const {
    KernelInput input = given_.input();
    input.bias.clear();
    return test_vector_for(std::move(input));
  }

  // Is the other problem right in a process that has served no other?
  std::string why_beside(const Neighbour& neighbour, const JudgedProblem& other) const {
    const std::string problem = "in a problem of " + neighbour.what;
    if (!hosted_) return "wrong " + problem + " that follows others: ";
    const std::unique_ptr<HostedProvider> host = started(kOtherSettings);
    const qcts_kernel* alone =
        neighbour.asked.id.op == case_.id.op
            ? &kernel_in(host.get())
            : kernel_for(host->table(), neighbour.asked, case_.implementation->kernel->variant);
    KernelRun run(*alone, other.input(), {});
    if (run.supports().status == QCTS_OK && !other.judge(run.run(Poison::zeros)))
      return "wrong " + problem + " that follows others, right in a separate process: keeps " +
             std::string(neighbour.kept) + " of an earlier problem; ";
    return "wrong " + problem + ", in a separate process too: ";
  }

  const Case& case_;
  const JudgeContext& context_;
  const HostedProvider::Kernel* const hosted_;  // nullptr: of this process
  const JudgedProblem& given_;
  const KernelAnswer& answer_;
  Verdict& verdict_;
};

}  // namespace

int64_t schemes_served(const Case& c) {
  const HostedProvider::Kernel* hosted = HostedProvider::kernel_of(*c.implementation->kernel);
  if (hosted == nullptr) return 1;
  const qcts_provider& table = hosted->owner->table();
  std::set<std::string_view> families;
  for (uint32_t i = 0; i < table.n_kernels; ++i)
    if (table.kernels[i] != nullptr && table.kernels[i]->op == hosted->op)
      families.insert(Implementation{table.name, table.kernels[i]}.family());
  return std::ranges::count_if(schemes(),
                               [&](const Scheme* scheme) { return families.contains(scheme->family()); });
}

bool is_dealt(const Case& c, int64_t share, int64_t few_schemes) {
  if (share > 1) share = std::min(share, (schemes_served(c) + few_schemes - 1) / few_schemes);
  return share <= 1 || (name_hash(c.full_id()) >> 32) % static_cast<uint64_t>(share) == 0;
}

void judge_fresh_process(const Case& c, const JudgeContext& context, const JudgedProblem& given,
                         const KernelAnswer& answer, Verdict& verdict) {
  FreshProcess(c, context, given, answer, verdict).run();
}

std::string effect_of_few_calls(const qcts_kernel& kernel, KernelRun& run) {
  constexpr size_t kSpans = 3, kCalls = 2;  // after a first span that fills caches
  run.run(Poison::zeros);
  std::array<Footprint, kSpans + 1> seen;
  for (Footprint& footprint : seen) {
    provider_run_batch(kernel, std::vector<qcts_problem>(kCalls, run.problem()), [] {});
    const std::optional<Footprint> now = provider_footprint(kernel);
    if (!now) return "";
    footprint = *now;
    footprint.private_bytes = 0;  // a few calls say nothing about memory: a heap grows by pages
  }
  return side_effect(seen, kCalls);
}

}  // namespace qcts
