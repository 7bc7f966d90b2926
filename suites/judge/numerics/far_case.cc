// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/numerics/far_case.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "suites/cases/offers.h"
#include "suites/host/message.h"
#include "suites/inputs/far_weight.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/first_answer.h"
#include "suites/judge/replay.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

constexpr size_t kJudgedRows = 64;
constexpr uint64_t kMaxPreparedBytes = uint64_t{5} << 30;

// The problem in the memory of a host, whose inputs begin with the repeated chunk.
class FarProblem {
 public:
  FarProblem(const KernelInput& input, const FarWeight& weight, uint32_t threads, HostMemory& memory,
             size_t repeated_bytes)
      : memory_(memory), builder_(input, threads), problem_(builder_.problem()) {
    constexpr size_t kForbidden = GuardedBuffer::kForbiddenBytes;
    codes_ = memory.take(weight.codes().name, HostAccess::reads, repeated_bytes + 2 * kForbidden, kForbidden,
                         repeated_bytes);
    std::ranges::copy(weight.chunk(), codes_.data() + kForbidden);
    planes_.push_back(abi_plane(weight.codes(), codes_.data() + kForbidden));
    for (const Plane& plane : weight.other_planes()) specs_.push_back({plane.name, plane.dtype, plane.shape});
    for (size_t i = 0; i < specs_.size(); ++i)
      planes_.push_back(abi_plane(specs_[i], input_buffer(specs_[i].name, weight.other_planes()[i].bytes)));
    problem_.planes = planes_.data();
    problem_.n_planes = static_cast<uint32_t>(planes_.size());
    problem_.x = input_buffer("x", weight.x());
    problem_.x_dtype = abi_dtype(input.x_dtype);
    y_ = &output_buffer("y", static_cast<size_t>(input.weight.n) * dtype_bytes(input.y_dtype));
    y_->poison(Poison::nan);
    problem_.y = y_->data();
    problem_.y_dtype = abi_dtype(input.y_dtype);
  }
  ~FarProblem() { memory_.give_back(codes_); }
  FarProblem(const FarProblem&) = delete;
  FarProblem& operator=(const FarProblem&) = delete;

  // Returns y. `facts` are the kernel's about problem().
  std::vector<std::byte> run(const qcts_kernel& kernel, const KernelFacts& facts) {
    if (facts.workspace_bytes > 0) {
      problem_.workspace = output_buffer("workspace", facts.workspace_bytes).data();
      problem_.workspace_bytes = facts.workspace_bytes;
    }
    if (facts.prepared_bytes > 0) {
      void* const prepared = output_buffer("prepared", facts.prepared_bytes).data();
      qcts_problem at_load = problem_;
      at_load.x = nullptr;
      at_load.y = nullptr;
      hold(kernel, provider_prepare(kernel, at_load, prepared), "prepare");
      problem_.prepared = prepared;
      problem_.prepared_bytes = facts.prepared_bytes;
    }
    hold(kernel, provider_run(kernel, problem_), "run");
    return y_->read();
  }
  const qcts_problem& problem() const { return problem_; }

 private:
  std::byte* input_buffer(const std::string& name, const std::vector<std::byte>& bytes) {
    GuardedBuffer& buffer = buffers_.emplace_back(name, 1, bytes.size(), bytes.size(), 0, &memory_);
    buffer.write(bytes);
    return buffer.data();
  }
  GuardedBuffer& output_buffer(const std::string& name, size_t bytes) {
    return buffers_.emplace_back(name, 1, bytes, bytes, 0, &memory_, HostAccess::writes);
  }
  void hold(const qcts_kernel& kernel, qcts_status status, const std::string& function) const {
    for (const GuardedBuffer& buffer : buffers_)
      if (const auto violation = buffer.violation())
        throw OverrunFault("wrote outside its buffers: " + *violation);
    if (status != QCTS_OK)
      throw ProviderFault(function + "() returned " + std::to_string(static_cast<int>(status)) +
                          " on a problem that supports() accepts" + provider_failure(kernel));
  }

  HostMemory& memory_;
  ProblemBuilder builder_;
  qcts_problem problem_;
  std::span<std::byte> codes_;
  std::vector<PlaneSpec> specs_;
  std::vector<qcts_plane> planes_;
  std::deque<GuardedBuffer> buffers_;
  GuardedBuffer* y_ = nullptr;
};

KernelInput input_of(const Case& c, const Synthetic& far) {
  KernelInput input;
  input.op = Op::linear;
  input.scheme = c.scheme;
  input.weight = far.weight;
  input.layout = kPlain;
  input.m = 1;
  input.activation = kWeightOnly;
  input.x_dtype = input.y_dtype = input.bias_dtype = far.weight.dtype;
  return input;
}

// Returns the share of outputs that the right answer for the next judged row would fail.
double noticed_share(const std::vector<Bounded>& bounds) {
  size_t noticed = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double other = bounds[(i + 1) % bounds.size()].value;
    noticed += other < bounds[i].low || other > bounds[i].high;
  }
  return static_cast<double>(noticed) / static_cast<double>(bounds.size());
}

// Names the number of bits to which an offset is truncated, if the wrong rows are those beyond what it can
// count; otherwise returns "".
std::string edge_text(const FarWeight& weight, std::span<const int64_t> rows,
                      const std::vector<bool>& wrong) {
  constexpr size_t kMostOf = 9, kOf = 10;  // a wrong row of codes may give a sum within the bound
  const auto n_wrong = static_cast<size_t>(std::ranges::count(wrong, true));
  for (const int bits : {32, 31})
    for (const auto& [unit, per_row] :
         {std::pair{"byte", weight.row_bytes()}, {"code", weight.row_codes()}}) {
      size_t beyond = 0, wrong_beyond = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        const bool is_beyond = (static_cast<uint64_t>(rows[i]) + 1) * per_row > uint64_t{1} << bits;
        beyond += is_beyond;
        wrong_beyond += is_beyond && wrong[i];
      }
      if (wrong_beyond == n_wrong && kOf * wrong_beyond >= kMostOf * beyond)
        return ", " + std::to_string(wrong_beyond) + " of the " + std::to_string(beyond) + " beyond " + unit +
               " 2^" + std::to_string(bits) + " and none before: an offset is kept in " +
               std::to_string(bits) + " bits";
    }
  return "";
}

void judge_rows(const qcts_kernel& kernel, KernelInput input, const FarWeight& weight,
                std::span<const int64_t> rows, const std::vector<std::byte>& y, Verdict& verdict) {
  input.weight.n = static_cast<int64_t>(rows.size());
  input.planes = weight.rows(rows);
  input.x = weight.x();
  const size_t bytes = dtype_bytes(input.y_dtype);
  std::vector<std::byte> got;
  for (const int64_t row : rows) {
    const auto first = y.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(row) * bytes);
    got.insert(got.end(), first, first + static_cast<ptrdiff_t>(bytes));
  }
  const LinearReference reference(input);
  const std::vector<Bounded> bounds = reference.bounds(declared_stages(kernel, input.x_dtype));
  const BoundedComparison compared = compare_bounded(bounds, input.y_dtype, got);
  verdict.measures.push_back({"worst_of_bound", "x", compared.worst, {}, {}, compared.total});
  if (!compared.holds()) {
    const auto row = static_cast<uint64_t>(rows[compared.first]);
    verdict.mismatch =
        mismatch_of(compared, "y: column " + std::to_string(row) + ", whose codes begin at byte " +
                                  std::to_string(row * weight.row_bytes()));
    verdict.status = Status::fail;
    verdict.reason = verdict.mismatch->where + ": want " + compared.want + ", got " + compared.got + "; " +
                     std::to_string(compared.differing) + " of " + std::to_string(compared.total) +
                     " judged elements" + edge_text(weight, rows, wrong_elements(bounds, input.y_dtype, got));
    return;
  }
  verdict.status = Status::pass;
  constexpr double kEnough = 0.9;
  if (noticed_share(bounds) < kEnough)
    verdict.findings.push_back(
        {Caveat::unnoticed_change, "the sum of another row would have passed too: the bound is too wide"});
}

}  // namespace

void judge_far_case(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const HostedProvider::Kernel* const hosted = HostedProvider::kernel_of(*c.implementation->kernel);
  if (hosted == nullptr || hosted->owner->device() != nullptr) {
    verdict.status = Status::not_supported;
    verdict.reason = "only the host of a shared library can map a weight of more than 4 GiB";
    return;
  }
  const Synthetic& far = *c.synthetic();
  const FarWeight weight(*c.scheme, far, context.seed ^ far.seed);
  const KernelInput input = input_of(c, far);
  verdict.asked = asked_problem(c, input);
  const RepeatedChunk repeated{kBuffersOffset + GuardedBuffer::kForbiddenBytes, kChunkBytes,
                               static_cast<size_t>((weight.code_bytes() + kChunkBytes - 1) / kChunkBytes)};
  const std::unique_ptr<HostedProvider> host = hosted->owner->started_anew(repeated);
  const qcts_kernel& kernel = *host->table().kernels[hosted->index];
  FarProblem problem(input, weight, context.threads, host->memory(), repeated.bytes * repeated.count);
  const KernelFacts facts = provider_facts(kernel, problem.problem());
  if (is_declined(facts.support, verdict)) return;
  if (facts.prepared_bytes > kMaxPreparedBytes) {
    verdict.status = Status::not_supported;
    verdict.reason = "its prepared weight would take " + std::to_string(facts.prepared_bytes) + " bytes";
    return;
  }
  const std::vector<std::byte> y = problem.run(kernel, facts);
  const std::vector<int64_t> rows = weight.drawn_rows(kJudgedRows, context.seed);
  judge_rows(kernel, input, weight, rows, y, verdict);
}

}  // namespace qcts
