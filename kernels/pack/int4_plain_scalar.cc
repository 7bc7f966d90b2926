// Codes into MSLK's preshuffled order (csrc/gemm/cutlass/mixed_dtype_utils.cu, preshuffle_i4 for bfloat16 x),
// by CUTLASS's layout of the tensor core's operand: tiles of 16 rows and 16 columns, n fastest; lane k % 8 /
// 2 + 4 (n % 8) of 32 has eight codes, of which bit 0 is n % 16 / 8, bit 1 is k % 16 / 8, bit 2 is k % 2. Two
// codes a byte, the even one low. Scale and zero_point stay as they are.
#include "kernels/entry.h"

namespace {

int64_t shuffled(int64_t n_count, int64_t n, int64_t k) {
  const int64_t tile = k / 16 * (n_count / 16) + n / 16, lane = k % 8 / 2 + 4 * (n % 8);
  return tile * 256 + lane * 8 + k % 2 * 4 + k % 16 / 8 * 2 + n % 16 / 8;
}

uint8_t get(const uint8_t* pairs, int64_t element) {
  return element % 2 == 0 ? pairs[element / 2] & 15 : pairs[element / 2] >> 4;
}
void put(uint8_t* pairs, int64_t element, uint8_t code) {
  uint8_t& pair = pairs[element / 2];
  pair = static_cast<uint8_t>(element % 2 == 0 ? (pair & 0xF0) | code : (pair & 15) | code << 4);
}

void pack_int4_plain(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  qcts::copy_planes_but(p, "qdata");
  const auto* from = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  auto* to = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k) put(to, shuffled(p.n, n, k), get(from, n * p.k + k));
}

}  // namespace

const qcts_kernel qcts_kernel_pack_int4_plain_scalar = qcts::exact_entry(
    QCTS_OP_PACK, "int4_plain", "scalar", "one code at a time by index map; bound by the scattered accesses",
    {qcts::supports_problem<qcts_kernel_pack_int4_plain_scalar>,
     qcts::run_checked<qcts_kernel_pack_int4_plain_scalar, pack_int4_plain>});
