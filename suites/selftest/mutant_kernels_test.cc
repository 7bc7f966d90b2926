// The proof of the judge: each planted fault is caught by a case of the quick inputs and named, and the
// unmutated control passes all of them. Public bugs of these kinds: intel/torch-xpu-ops#5001 (group index),
// openvino#32123 (nibble order), vllm#21066 (zero points), oneDNN#5634 (tails), sglang#29748 (stale memory).
#include "suites/selftest/mutant_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/inputs.h"
#include "suites/judge/judge.h"
#include "suites/base/paths.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace qcts::selftest {

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {Fault::none, "control", "linear", "int4_tinygemm", "numerics", ""},
      {Fault::none, "control_row", "linear", "int8_row", "numerics", ""},
      {Fault::none, "control_dequantize", "dequantize", "int4_tinygemm", "numerics", ""},
      {Fault::none, "control_determinism", "linear", "int4_tinygemm", "determinism", ""},
      {Fault::nibbles_swapped, "nibbles_swapped", "linear", "int4_tinygemm", "numerics",
       "hypothesis: nibbles swapped"},
      {Fault::nibbles_swapped, "nibbles_swapped_dequantize", "dequantize", "int4_tinygemm", "numerics",
       "y: row 0, column "},
      {Fault::next_group_scale, "next_group_scale", "linear", "int4_tinygemm", "numerics",
       "hypothesis: scale of the next group"},
      {Fault::next_row_scale, "next_row_scale", "linear", "int8_row", "numerics",
       "hypothesis: scale of the next row"},
      {Fault::zero_ignored, "zero_ignored", "linear", "int4_tinygemm", "numerics",
       "hypothesis: zero point ignored"},
      {Fault::scale_as_bf16, "scale_as_bf16", "linear", "int8_row", "numerics", "want "},
      {Fault::scale_as_bf16, "scale_as_bf16_dequantize", "dequantize", "int8_row", "numerics", "want 0x"},
      {Fault::tail_dropped, "tail_dropped", "linear", "int8_row", "numerics",
       "hypothesis: the weight is dropped"},
      {Fault::nan_output, "nan_output", "linear", "fp8_row", "numerics", "(nan)"},
      {Fault::last_row_unwritten, "last_row_unwritten", "linear", "int4_tinygemm", "numerics",
       "poisoned with NaN"},
      {Fault::previous_kept, "previous_kept", "dequantize", "int8_row", "numerics", "y: row"},
      {Fault::writes_behind, "writes_behind", "linear", "int8_row", "numerics",
       "y: 1 byte written behind the end, the first at +0"},
      {Fault::writes_before, "writes_before", "dequantize", "fp8_row", "numerics",
       "y: 1 byte written before the start, the nearest at -1"},
      {Fault::writes_input, "writes_input", "linear", "int8_row", "numerics", "wrote into its input x"},
      {Fault::reads_behind_row, "reads_behind_row", "linear", "int8_row", "numerics", "y: row"},
      {Fault::forgets_bias, "forgets_bias", "linear", "int4_tinygemm", "numerics",
       "look at the accumulation, the bias"},
      {Fault::changes_mxcsr, "changes_mxcsr", "linear", "int8_row", "numerics", "MXCSR"},
      {Fault::fails, "fails", "linear", "int8_row", "numerics", "on a problem that supports() takes"},
      {Fault::differs_each_time, "differs_each_time", "linear", "int4_tinygemm", "determinism",
       "claims to be deterministic"},
      {Fault::differs_with_threads, "differs_with_threads", "linear", "int4_tinygemm", "determinism",
       "claims to be thread-invariant"},
      {Fault::differs_with_batch, "differs_with_batch", "linear", "int4_tinygemm", "determinism",
       "claims to be batch-invariant"},
  };
  return all;
}

namespace {

const qcts_kernel& builtin_kernel(const std::string& op, const std::string& family) {
  const qcts_provider& provider = builtin_provider();
  for (uint32_t i = 0; i < provider.n_kernels; ++i) {
    const qcts_kernel& kernel = *provider.kernels[i];
    if (kernel.op == op_from_name(op) && kernel.scheme == family && std::string(kernel.variant) == "scalar")
      return kernel;
  }
  throw std::logic_error("no builtin scalar " + op + " of " + family);
}

uint32_t bytes_of_abi(uint32_t dtype) {
  return dtype == QCTS_F32 || dtype == QCTS_I32 ? 4 : dtype == QCTS_F16 || dtype == QCTS_BF16 ? 2 : 1;
}

// The caller's planes with one of them replaced by a changed copy.
struct ChangedPlane {
  std::vector<qcts_plane> planes;
  std::vector<std::byte> bytes;
  std::byte* data = nullptr;

  ChangedPlane(const qcts_problem& problem, const char* name)
      : planes(problem.planes, problem.planes + problem.n_planes) {
    for (qcts_plane& plane : planes) {
      if (std::string(plane.name) != name) continue;
      size_t size = bytes_of_abi(plane.dtype);
      for (uint32_t d = 0; d < plane.ndim; ++d) size *= static_cast<size_t>(plane.shape[d]);
      bytes.resize(size);
      std::memcpy(bytes.data(), plane.data, size);
      plane.data = data = bytes.data();
    }
    if (!data) throw std::logic_error(std::string("no plane ") + name);
  }
};

std::byte* y_row(const qcts_problem& p, int64_t row) {
  return static_cast<std::byte*>(p.y) + row * p.ldy_bytes;
}
int64_t y_rows(const qcts_problem& p) { return p.op == QCTS_OP_LINEAR ? p.m : p.n; }
int64_t y_cols(const qcts_problem& p) { return p.op == QCTS_OP_LINEAR ? p.n : p.k; }

void nudge(const qcts_problem& p) { y_row(p, 0)[0] ^= std::byte{1}; }

qcts_status run_with_planes(const qcts_kernel& base, const qcts_problem& problem,
                            const ChangedPlane& changed) {
  qcts_problem p = problem;
  p.planes = changed.planes.data();
  return base.run(&p);
}

qcts_status run_changed_planes(Fault fault, const qcts_kernel& base, const qcts_problem& p) {
  if (fault == Fault::nibbles_swapped) {
    ChangedPlane changed(p, "qdata");
    for (std::byte& pair : changed.bytes) pair = pair << 4 | pair >> 4;
    return run_with_planes(base, p, changed);
  }
  if (fault == Fault::scale_as_bf16) {
    ChangedPlane changed(p, "scale");
    for (size_t i = 0; i < changed.bytes.size() / 4; ++i)
      store_float(DType::float32, changed.bytes, i,
                  round_to(DType::bfloat16, load_float(DType::float32, changed.bytes, i)));
    return run_with_planes(base, p, changed);
  }
  if (fault == Fault::next_row_scale) {
    ChangedPlane changed(p, "scale");
    std::rotate(changed.bytes.begin(), changed.bytes.begin() + 4, changed.bytes.end());
    return run_with_planes(base, p, changed);
  }
  ChangedPlane changed(p, "scale_and_zero");
  const size_t element = bytes_of_abi(p.w_dtype), pair = 2 * element,
               group_row = static_cast<size_t>(p.n) * pair;
  if (fault == Fault::zero_ignored)
    for (size_t i = 0; i < changed.bytes.size(); i += pair)
      std::fill_n(changed.bytes.begin() + static_cast<ptrdiff_t>(i + element), element, std::byte{0});
  if (fault == Fault::next_group_scale) {
    std::copy(changed.bytes.begin() + static_cast<ptrdiff_t>(group_row), changed.bytes.end(),
              changed.bytes.begin());
  }
  return run_with_planes(base, p, changed);
}

qcts_status run_changed_x(Fault fault, const qcts_kernel& base, const qcts_problem& problem) {
  qcts_problem p = problem;
  const size_t element = bytes_of_abi(p.x_dtype), row = static_cast<size_t>(p.k) * element;
  std::vector<std::byte> x(row * static_cast<size_t>(p.m));
  for (int64_t i = 0; i < p.m; ++i) {
    const std::byte* from = static_cast<const std::byte*>(p.x) + i * p.ldx_bytes;
    std::memcpy(x.data() + static_cast<size_t>(i) * row, from, row);
    std::byte* last = x.data() + static_cast<size_t>(i + 1) * row - element;
    // reads_behind_row takes the element behind the last one for the last one.
    if (fault == Fault::tail_dropped)
      std::memset(last, 0, element);
    else
      std::memcpy(last, from + row, element);
  }
  p.x = x.data();
  p.ldx_bytes = static_cast<int64_t>(row);
  return base.run(&p);
}

qcts_status run_then_spoil(Fault fault, const qcts_kernel& base, const qcts_problem& p, int& calls) {
  const std::byte first = y_row(p, 0)[0];
  qcts_problem asked = p;
  if (fault == Fault::last_row_unwritten && p.m > 1) --asked.m;
  if (fault == Fault::forgets_bias) asked.bias = nullptr;
  const qcts_status status = base.run(&asked);
  const int64_t rows = y_rows(p), cols = y_cols(p);
  const size_t element = bytes_of_abi(p.y_dtype ? p.y_dtype : p.w_dtype);
  switch (fault) {
    case Fault::nan_output:
      std::memset(y_row(p, rows - 1) + static_cast<size_t>(cols - 1) * element, 0xff, element);
      break;
    case Fault::previous_kept:
      y_row(p, 0)[0] = first;
      break;
    case Fault::writes_behind:
      y_row(p, rows - 1)[static_cast<size_t>(cols) * element] ^= std::byte{0x55};
      break;
    case Fault::writes_before:
      y_row(p, 0)[-1] ^= std::byte{0x55};
      break;
    case Fault::writes_input:
      *static_cast<std::byte*>(const_cast<void*>(p.x)) ^= std::byte{1};
      break;
    case Fault::differs_each_time:
      if (calls++ % 5 == 4) nudge(p);
      break;
    case Fault::differs_with_threads:
      if (p.threads > 1) nudge(p);
      break;
    case Fault::differs_with_batch:
      if (p.m > 1) nudge(p);
      break;
#if defined(__SSE__)
    case Fault::changes_mxcsr:
      _mm_setcsr(_mm_getcsr() | 0x8040);
      break;
#endif
    case Fault::fails:
      return QCTS_FAILED;
    default:
      break;
  }
  return status;
}

qcts_status run_mutant(size_t index, const qcts_problem* problem) {
  static std::vector<int> calls(mutants().size());
  const Mutant& mutant = mutants()[index];
  const qcts_kernel& base = builtin_kernel(mutant.op, mutant.family);
  switch (mutant.fault) {
    case Fault::nibbles_swapped:
    case Fault::next_group_scale:
    case Fault::next_row_scale:
    case Fault::zero_ignored:
    case Fault::scale_as_bf16:
      return run_changed_planes(mutant.fault, base, *problem);
    case Fault::tail_dropped:
    case Fault::reads_behind_row:
      return run_changed_x(mutant.fault, base, *problem);
    default:
      return run_then_spoil(mutant.fault, base, *problem, calls[index]);
  }
}

constexpr size_t kMostMutants = 32;

// The ABI has no user pointer: one function for each place in the list.
template <size_t... I>
auto run_functions(std::index_sequence<I...>) {
  return std::array<qcts_status (*)(const qcts_problem*), sizeof...(I)>{
      [](const qcts_problem* problem) { return run_mutant(I, problem); }...};
}

}  // namespace

const qcts_kernel& mutant_kernel(const Mutant& mutant) {
  static std::deque<qcts_kernel> kernels;
  static const auto functions = run_functions(std::make_index_sequence<kMostMutants>());
  const size_t index = static_cast<size_t>(&mutant - mutants().data());
  qcts_kernel kernel = builtin_kernel(mutant.op, mutant.family);
  kernel.description = mutant.name;
  kernel.claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT;
  kernel.prepare = nullptr;
  kernel.prepared_bytes = nullptr;
  kernel.run = functions.at(index);
  return kernels.emplace_back(kernel);
}

namespace {

class MutantKernels : public testing::TestWithParam<size_t> {
 protected:
  // Verdicts of every quick input of the mutant's op, scheme by scheme of its family.
  std::vector<Verdict> judge_all(const Mutant& mutant) {
    const Implementation implementation{"mutant", &mutant_kernel(mutant)};
    const Kind kind = *kind_from_name(mutant.kind);
    JudgeContext context;
    context.threads = 1;
    context.program = "qcts";
    std::vector<Verdict> verdicts;
    for (const Scheme* scheme : schemes()) {
      if (scheme->family() != mutant.family) continue;
      for (const Synthetic& input : synthetic_inputs(kind, mutant.op, *scheme, "plain", InputSet::few)) {
        if (input.activation != kWeightOnly) continue;  // of which the mutants know nothing
        Case c;
        c.kind = kind;
        c.op = mutant.op;
        c.scheme = scheme;
        c.synthetic = input;
        c.layout = "plain";
        c.implementation = &implementation;
        c.id = std::string(mutant.kind) + "." + mutant.op + "/" + std::string(scheme->name()) + "/" +
               input_name(input, mutant.op, "plain");
        verdicts.push_back(judge(c, context));
      }
    }
    return verdicts;
  }
};

TEST_P(MutantKernels, IsCaughtAndNamed) {
  const Mutant& mutant = mutants()[GetParam()];
  const std::vector<Verdict> verdicts = judge_all(mutant);
  ASSERT_FALSE(verdicts.empty());
  if (mutant.fault == Fault::none) {
    for (const Verdict& verdict : verdicts)
      EXPECT_EQ(verdict.status, Status::pass)
          << verdict.case_id << ": " << status_name(verdict.status) << ": " << verdict.reason;
    return;
  }
  std::string reasons;
  bool named = false;
  for (const Verdict& verdict : verdicts) {
    if (verdict.status == Status::pass) continue;
    EXPECT_EQ(verdict.status, Status::fail) << verdict.case_id << ": " << verdict.reason;
    reasons += verdict.case_id + ": " + verdict.reason + "\n";
    named = named || verdict.reason.find(mutant.reason) != std::string::npos;
  }
  EXPECT_FALSE(reasons.empty()) << mutant.name << " survived " << verdicts.size() << " cases";
  EXPECT_TRUE(named) << "no verdict says '" << mutant.reason << "':\n" << reasons;
}

INSTANTIATE_TEST_SUITE_P(All, MutantKernels, testing::Range<size_t>(0, mutants().size()),
                         [](const auto& info) { return std::string(mutants()[info.param].name); });

// A kernel that claims nothing is measured, not failed.
TEST(MutantKernelsWithoutClaims, NonDeterminismIsAMeasure) {
  const auto found = std::find_if(mutants().begin(), mutants().end(),
                                  [](const Mutant& m) { return m.fault == Fault::differs_with_threads; });
  qcts_kernel kernel = mutant_kernel(*found);
  kernel.claims = 0;
  const Implementation implementation{"mutant", &kernel};
  const Scheme& scheme = *find_scheme("int4_tinygemm_g32");
  Case c;
  c.kind = Kind::determinism;
  c.op = "linear";
  c.scheme = &scheme;
  c.synthetic = synthetic_inputs(Kind::determinism, "linear", scheme, "plain", InputSet::few).front();
  c.layout = "plain";
  c.implementation = &implementation;
  c.id = "determinism.linear/int4_tinygemm_g32/x";
  const Verdict verdict = judge(c, JudgeContext());
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
  const auto measure = std::find_if(verdict.measures.begin(), verdict.measures.end(),
                                    [](const Measure& m) { return m.name == "same_for_threads"; });
  ASSERT_NE(measure, verdict.measures.end());
  EXPECT_EQ(measure->value, 0);
}

}  // namespace
}  // namespace qcts::selftest
