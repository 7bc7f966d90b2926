// SPDX-License-Identifier: BSD-3-Clause
// Float codes in blocks of 32 with a scale and a minimum, each the product of two numbers, rounded to the
// weight's dtype.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct GgufSource {
  static constexpr int64_t kBlock = 32, kBlocks = 8;  // of a super block
  const qcts_problem& p;
  const void *codes, *scale_scales, *scales, *min_scales, *mins;
  explicit GgufSource(const qcts_problem& problem)
      : p(problem),
        codes(qcts::in_plane(problem, "int_data")),
        scale_scales(qcts::in_plane(problem, "super_block_scale_scale")),
        scales(qcts::in_plane(problem, "quantized_block_scale")),
        min_scales(qcts::in_plane(problem, "super_block_min_scale")),
        mins(qcts::in_plane(problem, "quantized_block_min")) {}
  int64_t group() const { return kBlock; }
  double code(int64_t n, int64_t k) const { return load(p.w_dtype, codes, n * p.k + k); }
  double scale(int64_t n, int64_t g) const { return product(scale_scales, scales, n, g); }
  double zero(int64_t n, int64_t g) const { return product(min_scales, mins, n, g); }
  float product(const void* of_super, const void* of_block, int64_t n, int64_t g) const {
    const int64_t block = n * (p.k / kBlock) + g;
    return round_to(p.w_dtype, load(p.w_dtype, of_super, block / kBlocks) * load(p.w_dtype, of_block, block));
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_gguf_proto_scalar =
    linear_of<qcts_kernel_linear_gguf_proto_scalar, GgufSource>("gguf_proto");
