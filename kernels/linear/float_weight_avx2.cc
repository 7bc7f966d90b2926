// SPDX-License-Identifier: BSD-3-Clause
// A float weight under float8 rows of x (pytorch/ao#2338). Rows of x become codes times their scale, in
// float32; then this is a `linear` with float x whose blocks hold the weight as float32. The bound of x is
// stored after the packed weight, for calls without planes.
#include "kernels/avx2/float8.h"
#include "kernels/avx2/linear.h"
#include "kernels/avx2/quantize/float8_bands.h"
#include "kernels/families/elements.h"

namespace {

using namespace qcts;
using namespace qcts::avx2;

constexpr const qcts_kernel& kFloatWeight = qcts_kernel_linear_float_weight_avx2;

struct FloatColumns {
  static constexpr int kStep = 1, kWide = 1, kBytesPerK = 4 * kColumns, kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 0; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    out[0] = _mm256_loadu_ps(reinterpret_cast<const float*>(at) + vector * kLanes);
  }

  static void scales(const qcts_problem&, const uint8_t*, float* scale, float*) {
    for (int c = 0; c < kColumns; ++c) scale[c] = 1;
  }

  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<FloatColumns>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* weight = static_cast<const char*>(in_plane(p, "original_weight"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    auto* to = reinterpret_cast<float*>(out);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < p.k; ++k)
        to[k * kColumns + c] = scalar::load(p.w_dtype, weight, (first_n + c) * p.k + k);
  }
};

constexpr int64_t kBoundBytes = 64;

uint64_t packed_bytes(const qcts_problem* p) { return prepared_bytes<FloatColumns>(p) + kBoundBytes; }

void pack(const qcts_problem* p, void* prepared) {
  pack_weight<FloatColumns>(p, prepared);
  std::memcpy(static_cast<char*>(prepared) + prepared_bytes<FloatColumns>(p),
              in_plane(*p, "activation_scale_ub"), 4);
}

// [m][padded k] floats, then [m][k] codes.
uint64_t x_bytes(const qcts_problem* p) {
  return workspace_bytes<FloatColumns>(p) + static_cast<uint64_t>(p->m * p->k);
}

struct XCall {
  Float8Task task;
  Float8Codes plain;
  float* x;
  int64_t stride;
};

void quantize_rows(void* context, int64_t first, int64_t last) {
  const XCall& call = *static_cast<const XCall*>(context);
  const Float8Task& task = call.task;
  for (int64_t m = first; m < last; ++m) {
    const float scale = float8_scale(task, largest_of(task.from.dtype, task.from.row(m), task.k));
    uint8_t* codes = task.codes + m * task.k;
    quantize_float8_part<Float8Parts>(task, call.plain, m, 0, task.k, scale, false, codes);
    float* to = call.x + m * call.stride;
    for (int64_t k = 0; k < call.stride; ++k)
      to[k] = k < task.k ? scalar::e4m3fn_to_f32(codes[k]) * scale : 0;
  }
}

void run(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  const int64_t stride = padded_k<FloatColumns>(p);
  XCall x = {float8_task(p), nullptr, static_cast<float*>(p.workspace), stride};
  std::memcpy(&x.task.max, static_cast<const char*>(p.prepared) + prepared_bytes<FloatColumns>(problem), 4);
  x.task.codes = reinterpret_cast<uint8_t*>(x.x + p.m * stride);
  x.plain = plain_float8_codes(x.task);
  parallel_for(p.threads, p.m, 1, quantize_rows, &x);
  LinearCall call = {problem, static_cast<const uint8_t*>(p.prepared), x.x, nullptr};
  parallel_for(p.threads, blocks(p), 1, multiply_blocks<FloatColumns>, &call);
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return supports_policy<kFloatWeight>(problem, why, why_size);
}

qcts_status prepare_float_weight(const qcts_problem* problem, void* prepared) {
  const qcts_problem copy = as_weight_only(*problem);
  if (supports(problem, nullptr, 0) != QCTS_OK || check_prepare(kFloatWeight, &copy) != QCTS_OK ||
      !gives_scale(kFloatWeight, *problem))
    return QCTS_INVALID;
  pack(problem, prepared);
  return QCTS_OK;
}

qcts_status run_float_weight(const qcts_problem* problem) {
  const qcts_problem copy = as_weight_only(*problem);
  if (supports(problem, nullptr, 0) != QCTS_OK || check_run(kFloatWeight, &copy) != QCTS_OK)
    return QCTS_INVALID;
  if (copy.m > 0) run(problem);
  return QCTS_OK;
}

}  // namespace

// x is rounded once more, as the product of its code and scale.
const qcts_kernel qcts_kernel_linear_float_weight_avx2 =
    linear_entry("float_weight:dyn_row_fbgemm", "avx2",
                 "64 columns per block of float32; bound by reading weights, then by fma",
                 numerics_of_sums(QCTS_F32, QCTS_F32),
                 {supports, run_float_weight, x_bytes, packed_bytes, prepare_float_weight});
