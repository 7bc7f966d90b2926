// SPDX-License-Identifier: BSD-3-Clause
// pack and unpack of the swizzled scales of mx and nvfp4, and of preshuffled int4_plain, scalar, with the
// faults ps_*, us_* and pi_*. One question serves both ways: where is element (row, column)?
#include <algorithm>
#include <cstring>

#include "kernels/abi/problem.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/more.h"

namespace qcts::mutants {
namespace {

using enum Fault;

const qcts_plane* tile_plane(const qcts_plane* planes, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i)
    if (std::strcmp(planes[i].name, name) == 0) return &planes[i];
  return nullptr;
}

int64_t plane_bytes(const qcts_plane& plane) {
  int64_t bytes = plane.dtype == QCTS_F32 ? 4 : plane.dtype == QCTS_F16 || plane.dtype == QCTS_BF16 ? 2 : 1;
  for (uint32_t d = 0; d < plane.ndim; ++d) bytes *= plane.shape[d];
  return bytes;
}

int64_t scale_offset(const qcts_problem& p, int64_t across, int64_t row, int64_t col) {
  const int64_t tiles_across = (across + 3) / 4, tiles_down = (p.n + 127) / 128;
  int64_t tile = row / 128 * tiles_across + col / 4;
  if (planted(ps_tiles_column_major) || planted(pb_both_ways_column_major) || planted(us_tiles_column_major))
    tile = col / 4 * tiles_down + row / 128;
  if (planted(ps_rows_in_order)) return tile * 512 + row % 128 * 4 + col % 4;
  if (planted(us_second_half_swapped) && row % 128 >= 64) row ^= 32;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4;
}

void move_scales(const qcts_problem& p, const qcts_plane& from, const qcts_plane& to) {
  const bool packing = p.op == QCTS_OP_PACK;
  const qcts_plane& plain = packing ? from : to;
  auto *source = static_cast<uint8_t*>(from.data), *target = static_cast<uint8_t*>(to.data);
  const int64_t across = plain.shape[1];
  if (packing && !planted(ps_padding_unwritten))
    std::memset(target, planted(ps_padding_is_one) ? 127 : 0, static_cast<size_t>(plane_bytes(to)));
  for (int64_t row = 0; row < p.n; ++row)
    for (int64_t col = 0; col < across; ++col) {
      const int64_t tiled = scale_offset(p, across, row, col), flat = row * across + col;
      target[packing ? tiled : flat] = source[packing ? flat : tiled];
    }
}

int64_t shuffled(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t tiles_down = planted(pi_tiles_of_k_first) ? 0 : (p.n + 15) / 16;
  const int64_t tile = tiles_down == 0 ? n / 16 * (p.k / 16) + k / 16 : k / 16 * tiles_down + n / 16;
  const int64_t lane = k % 8 / 2 + 4 * (n % 8);
  const int64_t row_half = n % 16 / 8, column_half = k % 16 / 8;
  const int64_t pair = planted(pi_halves_swapped) ? row_half * 2 + column_half : column_half * 2 + row_half;
  return tile * 256 + lane * 8 + k % 2 * 4 + pair;
}

void move_codes(const qcts_problem& p, const qcts_plane& from, const qcts_plane& to) {
  const auto* source = static_cast<const uint8_t*>(from.data);
  auto* target = static_cast<uint8_t*>(to.data);
  std::memset(target, 0, static_cast<size_t>(plane_bytes(to)));
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k) {
      int64_t at = n * p.k + k, goes = shuffled(p, n, k);
      if (p.op == QCTS_OP_UNPACK) std::swap(at, goes);
      const int code = at % 2 == 0 ? source[at / 2] & 15 : source[at / 2] >> 4;
      target[goes / 2] = static_cast<uint8_t>(target[goes / 2] | code << (goes % 2 == 0 ? 0 : 4));
    }
}

template <const qcts_kernel& kKernel>
qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const bool shuffles = std::strcmp(kKernel.scheme, "int4_plain") == 0;
  if (problem->layout == nullptr ||
      std::strcmp(problem->layout, shuffles ? "preshuffled_bf16" : "swizzled") != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "layout");
  if (shuffles && (problem->n % 16 != 0 || problem->k % 16 != 0))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "n and k must be multiples of 16");
  return QCTS_OK;
}

template <const qcts_kernel& kKernel>
qcts_status run(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  if (supports<kKernel>(problem, nullptr, 0) != QCTS_OK || p.n_planes == 0 || p.n_out_planes == 0)
    return QCTS_INVALID;
  for (uint32_t i = 0; i < p.n_out_planes; ++i) {
    const qcts_plane& to = p.out_planes[i];
    const qcts_plane* from = tile_plane(p.planes, p.n_planes, to.name);
    if (from == nullptr) return QCTS_INVALID;
    const bool shuffles = std::strcmp(kKernel.scheme, "int4_plain") == 0;
    if (shuffles && std::strcmp(to.name, "qdata") == 0)
      move_codes(p, *from, to);
    else if (!shuffles && std::strcmp(to.name, "scale") == 0)
      move_scales(p, *from, to);
    else
      std::memcpy(to.data, from->data, static_cast<size_t>(plane_bytes(to)));
  }
  return QCTS_OK;
}

template <const qcts_kernel& kKernel>
constexpr qcts_kernel make(qcts_op op, const char* family) {
  return exact_kernel(op, family, supports<kKernel>, run<kKernel>);
}

}  // namespace

const qcts_kernel pack_mx = make<pack_mx>(QCTS_OP_PACK, "mx");
const qcts_kernel unpack_mx = make<unpack_mx>(QCTS_OP_UNPACK, "mx");
const qcts_kernel pack_nvfp4 = make<pack_nvfp4>(QCTS_OP_PACK, "nvfp4");
const qcts_kernel unpack_nvfp4 = make<unpack_nvfp4>(QCTS_OP_UNPACK, "nvfp4");
const qcts_kernel pack_int4_plain = make<pack_int4_plain>(QCTS_OP_PACK, "int4_plain");
const qcts_kernel unpack_int4_plain = make<unpack_int4_plain>(QCTS_OP_UNPACK, "int4_plain");

}  // namespace qcts::mutants
