// Layout and limits: kernels/avx2_int4.h. The plain planes have signed codes, the even k in the low nibble,
// and a plane each of scales and zeros.
#include "kernels/avx2_int4.h"

namespace {

using namespace qcts::avx2;

struct Plain {
  const qcts_problem& p;
  const uint8_t* pairs;
  const char *scales, *zeros;
  int64_t bytes;
  explicit Plain(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scales(static_cast<const char*>(qcts::in_plane(problem, "scale"))),
        zeros(static_cast<const char*>(qcts::in_plane(problem, "zero_point"))),
        bytes(qcts::dtype_bytes(problem.w_dtype)) {}

  uint32_t code(int64_t n, int64_t k) const {
    const uint32_t pair = pairs[(n * p.k + k) / 2];
    return (k % 2 == 0 ? pair & 15 : pair >> 4) ^ 8;
  }
  void copy_scales(int64_t g, int64_t n, uint8_t* scale, uint8_t* zero) const {
    const int64_t at = (g * p.n + n) * bytes;
    std::memcpy(scale, scales + at, static_cast<size_t>(bytes));
    std::memcpy(zero, zeros + at, static_cast<size_t>(bytes));
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_plain_avx2 =
    linear_of<qcts_kernel_linear_int4_plain_avx2, Int4Linear<Plain>>(
        "int4_plain",
        "64 columns a block, nibbles looked up in registers for m <= 4, to a panel above; bound by decoding, "
        "then by fma",
        qcts::supports_problem<qcts_kernel_linear_int4_plain_avx2>);
