// Scales out of tiles of 128 x 4, four bytes at a time; the codes stay in their order
// (kernels/families/block_scales.h).
#include "kernels/scalar/blocks.h"

namespace {

void unpack_nvfp4(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  const qcts::ScaleShape scales = {p.n, p.k / 16};
  qcts::copy_planes_but(p, "scale");
  qcts::unswizzle_scales(p.threads, scales, qcts::in_plane(p, "scale"), qcts::out_plane(p, "scale"));
}

}  // namespace

const qcts_kernel qcts_kernel_unpack_nvfp4_scalar =
    qcts::exact_entry(QCTS_OP_UNPACK, "nvfp4", "scalar", "a copy of the codes; bound by memory",
                      {qcts::supports_problem<qcts_kernel_unpack_nvfp4_scalar>,
                       qcts::run_checked<qcts_kernel_unpack_nvfp4_scalar, unpack_nvfp4>});
