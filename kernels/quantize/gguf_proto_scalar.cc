// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 quant_primitives.py: _choose_qparams_gguf, _quantize_gguf. A block of 32 has a scale, its
// range / 15, and a minimum; a super block of 256 divides those of its eight blocks by their largest
// magnitude / 63 and clamps the quotients to 0 .. 63, so a negative minimum becomes 0. Codes stay floats: (w
// - minimum) / scale, with both as they are read back. Every step is rounded to the weight's dtype. A block
// of equal elements divides by 0 and stores NaN or infinite codes, as the original does.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"
#include "kernels/scalar/blocks.h"

namespace {

using namespace qcts::scalar;

constexpr int64_t kBlock = 32, kBlocks = 8, kSuperBlock = kBlock * kBlocks;
constexpr float kMaxScale = 63, kMaxCode = 15;

struct GgufPlanes {
  uint32_t dtype;
  void *scale_scales, *min_scales, *scales, *mins, *codes;
  explicit GgufPlanes(const qcts_problem& p)
      : dtype(p.w_dtype),
        scale_scales(qcts::out_plane(p, "super_block_scale_scale")),
        min_scales(qcts::out_plane(p, "super_block_min_scale")),
        scales(qcts::out_plane(p, "quantized_block_scale")),
        mins(qcts::out_plane(p, "quantized_block_min")),
        codes(qcts::out_plane(p, "int_data")) {}
};

// Both are NaN if the block holds one.
void range_of(uint32_t dtype, const char* block, float* scale, float* min) {
  float low = load(dtype, block, 0), high = low;
  for (int64_t i = 0; i < kBlock; ++i) {
    const float w = load(dtype, block, i);
    if (w != w) {
      *scale = *min = w;
      return;
    }
    low = w < low ? w : low;
    high = w > high ? w : high;
  }
  *scale = round_to(dtype, round_to(dtype, high - low) / kMaxCode);
  *min = low;
}

// Divides and clamps the values of eight blocks, stores them from `at` on, and returns their unit.
float quantize_level(uint32_t dtype, const float* values, int64_t at, void* to) {
  const float largest = largest_of(QCTS_F32, reinterpret_cast<const char*>(values), kBlocks);
  const float unit = round_to(dtype, largest / kMaxScale);
  for (int64_t b = 0; b < kBlocks; ++b) {
    const float steps = round_to(dtype, values[b] / unit);
    store(dtype, to, at + b, steps < 0 ? 0 : steps > kMaxScale ? kMaxScale : steps);
  }
  return unit;
}

void quantize_super_block(const GgufPlanes& planes, const char* from, int64_t super) {
  const uint32_t dtype = planes.dtype;
  const int64_t elem_bytes = qcts::dtype_bytes(dtype), first = super * kBlocks;
  float scales[kBlocks], mins[kBlocks];
  for (int64_t b = 0; b < kBlocks; ++b) range_of(dtype, from + b * kBlock * elem_bytes, &scales[b], &mins[b]);
  const float scale_unit = quantize_level(dtype, scales, first, planes.scales);
  const float min_unit = quantize_level(dtype, mins, first, planes.mins);
  store(dtype, planes.scale_scales, super, scale_unit);
  store(dtype, planes.min_scales, super, min_unit);
  for (int64_t i = 0; i < kSuperBlock; ++i) {
    const int64_t block = first + i / kBlock;
    const float scale = round_to(dtype, scale_unit * load(dtype, planes.scales, block));
    const float min = round_to(dtype, min_unit * load(dtype, planes.mins, block));
    const float above = round_to(dtype, load(dtype, from, i) - min);
    store(dtype, planes.codes, super * kSuperBlock + i, above / scale);
  }
}

void quantize_gguf(const qcts_problem& p, int64_t first, int64_t last) {
  const GgufPlanes planes(p);
  const int64_t supers = p.k / kSuperBlock, super_bytes = kSuperBlock * qcts::dtype_bytes(p.w_dtype);
  for (int64_t n = first; n < last; ++n)
    for (int64_t s = 0; s < supers; ++s)
      quantize_super_block(planes, static_cast<const char*>(p.x) + n * p.ldx_bytes + s * super_bytes,
                           n * supers + s);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_gguf_proto_scalar =
    qcts::exact_rows<qcts_kernel_quantize_gguf_proto_scalar, quantize_gguf>(
        QCTS_OP_QUANTIZE, "gguf_proto", "scalar",
        "ranges of eight blocks, their scales, then codes; bound by one division per element");
