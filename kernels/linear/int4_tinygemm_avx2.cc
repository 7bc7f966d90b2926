// Layout and limits: kernels/avx2_int4.h. The plain planes have the even k in the high nibble, and scale and
// zero side by side.
#include "kernels/avx2_int4.h"

namespace {

using namespace qcts::avx2;

struct Tinygemm {
  const qcts_problem& p;
  const uint8_t* pairs;
  const char* scale_and_zero;
  int64_t bytes;
  explicit Tinygemm(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scale_and_zero(static_cast<const char*>(qcts::in_plane(problem, "scale_and_zero"))),
        bytes(qcts::dtype_bytes(problem.w_dtype)) {}

  uint32_t code(int64_t n, int64_t k) const {
    const uint32_t pair = pairs[(n * p.k + k) / 2];
    return k % 2 == 0 ? pair >> 4 : pair & 15;
  }
  void copy_scales(int64_t g, int64_t n, uint8_t* scale, uint8_t* zero) const {
    const char* at = scale_and_zero + 2 * (g * p.n + n) * bytes;
    std::memcpy(scale, at, static_cast<size_t>(bytes));
    std::memcpy(zero, at + bytes, static_cast<size_t>(bytes));
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx2 =
    linear_of<qcts_kernel_linear_int4_tinygemm_avx2, Int4Linear<Tinygemm>>(
        "int4_tinygemm",
        "64 columns a block, nibbles looked up in registers for m <= 4, to a panel above; bound by decoding, "
        "then by fma",
        qcts::supports_problem<qcts_kernel_linear_int4_tinygemm_avx2>);
