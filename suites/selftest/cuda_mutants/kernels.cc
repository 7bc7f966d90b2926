// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cuda_mutants/kernels.h"

#include "kernels/sm80/dequantize.h"
#include "kernels/sm80/pack.h"
#include "kernels/sm80/quantize_ops.h"
#include "kernels/sm80/weights.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::cuda_mutants {
namespace {

using namespace sm80;
using mutants::planted;
using enum mutants::Fault;

constexpr const char *kVariant = "sm80", *kHow = "a device kernel";

// Leaves out the values that the first exchange between lanes brings.
struct HalfMagnitude : Magnitude {
  uint32_t merges = 0;
  QCTS_DEVICE void merge(int i, uint32_t other) {
    if (merges++ > 0 || !planted(g_maximum_of_half)) Magnitude::merge(i, other);
  }
};

template <int kBits>
struct FaultyMx : MxQuantizer<kBits> {
  using Base = MxQuantizer<kBits>;
  using Base::Base;
  using Range = HalfMagnitude;
  template <class T>
  BlockFactor scale(const Range& range, int64_t run) const {
    Range seen = range;
    if (planted(g_maximum_through_bf16)) seen.word[0] = bits_of(round_to<BF16>(range.largest()));
    BlockFactor of = Base::template scale<T>(seen, run);
    if (planted(g_fraction_in_e8m0)) of.byte |= bits_of(range.largest()) >> 15 & 0xFF;
    return of;
  }
};
qcts_status run_quantize_mx(const qcts_problem& p) {
  const Runs x = runs_of(p, 32);
  return scheme_params(p).element_dtype == QCTS_F4_E2M1_X2 ? quantize(p, FaultyMx<4>(p), x)
                                                           : quantize(p, FaultyMx<8>(p), x);
}

qcts_status run_quantize_intx(const qcts_problem& p) {
  const int64_t group = p.group == 64 && planted(g_one_group_size_halved) ? 32 : p.group;
  return quantize_affine(p, intx_recipe(p), runs_of(p, group != 0 ? group : p.k));
}

struct AnyZero {
  static bool stays(uint32_t code) { return planted(g_minus_zero_stays) ? code != 0 : NotZero::stays(code); }
};

// Finds the largest element, or 0.
struct SignedMagnitude : Magnitude {
  void add(float x) { Magnitude::add(x < 0 && planted(g_unaligned_maximum_signed) ? 0 : x); }
};

template <class RangeOf>
struct FaultyFloat8 : Float8Quantizer<RangeOf> {
  using Base = Float8Quantizer<RangeOf>;
  explicit FaultyFloat8(const qcts_problem& p) : Base(float8_quantizer<RangeOf>(p)) {}
  template <class T>
  uint32_t code(float scale, float x) const {
    const float quotient = planted(g_f8_reciprocal) ? x * (1 / scale) : x / scale;
    // Rounding is to nearest, so this is halfway to the next code, if there were one.
    const float first_beyond = this->format.largest * (1 + 0.5f / static_cast<float>(14));
    if (planted(g_f8_overflow_is_nan) && fabsf(quotient) >= first_beyond) return 0x7F;
    return this->format.encode(quotient);
  }
  template <class T, int kCount>
  void encode(float scale, const float (&x)[kCount], int64_t, bool, uint32_t (&words)[2]) const {
    for (int i = 0; i < kCount; ++i) Base::Codes::put(words, i, code<T>(scale, x[i]));
  }
};

qcts_status run_quantize_fp8_row(const qcts_problem& p) {
  return quantize(p, FaultyFloat8<Magnitude>(p), float8_runs(p));
}
qcts_status run_activation_fp8_row(const qcts_problem& p) {
  const Runs x = float8_runs(p);
  if (has_aligned_rows(x.x, x.rows, x.stride_bytes)) return quantize_float8(p);
  return quantize(p, FaultyFloat8<SignedMagnitude>(p), x);
}
qcts_status run_activation_fp8(const qcts_problem& p) {
  if (!is_static(p)) return quantize_float8(p);
  FaultyFloat8<NoRange> family(p);
  family.given_scale = given_bytes(p, "act_quant_scale");
  family.has_one = true;
  return quantize(p, family, runs_of(p, p.k));
}

// Uses tiles whenever the codes allow them.
qcts_status run_dequantize_fp8_row(const qcts_problem& p) {
  const Float8Weight family(p);
  if (!planted(g_y_taken_as_aligned) || p.k % 16 != 0 || !is_multiple_of_16(family.codes))
    return dequantize<Float8Weight>(p);
  return with_type(p.w_dtype, [&](auto type) {
    const TileShape shape = shape_of<Float8Weight>(1);
    const sm80::Rows y = {static_cast<uint8_t*>(p.y), p.ldy_bytes, p.n, p.k, shape};
    return launch(p,
                  {.blocks_x = blocks_of_tiles<Float8Weight>(shape, p.n, p.k),
                   .threads = kBlockThreads,
                   .shared_bytes = kTileSharedBytes<Float8Weight>},
                  dequantize_tiles<decltype(type), Float8Weight>, family, y);
  });
}

// Rows of scales are padded to a multiple of 4.
template <bool kPacks>
qcts_status run_move_mx(const qcts_problem& p) {
  constexpr int64_t kPadded = 4 * 32;
  qcts_problem changed = p;
  if (planted(kPacks ? g_plain_scales_padded : g_padded_scales_as_data))
    changed.k = (p.k + kPadded - 1) / kPadded * kPadded;
  return move_block_scales<kPacks, 32>(changed);
}

}  // namespace

const qcts_kernel quantize_mx =
    exact_launched<quantize_mx, run_quantize_mx>(QCTS_OP_QUANTIZE, "mx", kVariant, kHow);
const qcts_kernel quantize_intx =
    exact_launched<quantize_intx, run_quantize_intx>(QCTS_OP_QUANTIZE, "intx", kVariant, kHow);
const qcts_kernel quantize_fp8_row =
    exact_launched<quantize_fp8_row, run_quantize_fp8_row>(QCTS_OP_QUANTIZE, "fp8_row", kVariant, kHow);
const qcts_kernel quantize_fp8_sparse24 =
    exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", kVariant, kHow,
                {.supports = supports_problem<quantize_fp8_sparse24>,
                 .run = run_launched<quantize_fp8_sparse24, quantize_sparse24<Sparse24Quantizer<AnyZero>>>,
                 .workspace_bytes = [](const qcts_problem*) { return uint64_t{sizeof(uint32_t)}; },
                 .failure = last_failure});
const qcts_kernel activation_fp8_row = activation_launched<activation_fp8_row, run_activation_fp8_row>(
    "fp8_row:dyn_row,dyn_row_mslk", kVariant, kHow);
const qcts_kernel activation_fp8 = activation_launched<activation_fp8, run_activation_fp8>(
    "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", kVariant, kHow);
const qcts_kernel dequantize_fp8_row =
    exact_launched<dequantize_fp8_row, run_dequantize_fp8_row>(QCTS_OP_DEQUANTIZE, "fp8_row", kVariant, kHow);
const qcts_kernel pack_mx = exact_launched<pack_mx, run_move_mx<true>>(QCTS_OP_PACK, "mx", kVariant, kHow);
const qcts_kernel unpack_mx =
    exact_launched<unpack_mx, run_move_mx<false>>(QCTS_OP_UNPACK, "mx", kVariant, kHow);

}  // namespace qcts::cuda_mutants
