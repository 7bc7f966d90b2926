// SPDX-License-Identifier: BSD-3-Clause
// pack and unpack of int4_tinygemm, scalar, with the faults p4_* and u4_*. One question serves both: where is
// code (n, k)? The sources of the maps are named in kernels/pack.
#include <algorithm>
#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::mutants {
namespace {

using enum Fault;

struct Place {
  int64_t byte;
  int shift;
};

bool is(const qcts_problem& p, const char* layout) { return std::strcmp(p.layout, layout) == 0; }
int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

Place tile_place(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t k_tiles = round_up(p.k, 1024) / 128;
  if (planted(
          p4_rocm_tiles)) {  // n = 16 tile + lane % 16, k = 16 (8 k_tile + 2 j + half) + 4 (lane / 16) + i
    const int64_t lane = k % 16 / 4 * 16 + n % 16, j = k % 128 / 32, half = k % 32 / 16, i = k % 4;
    const int64_t word = ((n / 16 * k_tiles + k / 128) * 64 + lane) * 4 + j;
    const int64_t nibble = i % 2 * 4 + 2 * half + i / 2;
    return {4 * word + nibble / 2, nibble % 2 == 0 ? 0 : 4};
  }
  const int64_t lane = n % 8 * 4 + k % 8 / 2, j = k % 128 / 32;
  const int64_t word = ((n / 8 * k_tiles + k / 128) * 32 + lane) * 4 + j;
  const int64_t nibble = k % 2 * 4 + k % 32 / 8;
  return {4 * word + nibble / 2, nibble % 2 == 0 ? 0 : 4};
}

Place place_of(const qcts_problem& p, int64_t n, int64_t k) {
  if (planted(p4_rows_in_16_bits)) n &= 0xFFFF;
  if (is_tile_packed(p.layout)) return tile_place(p, n, k);
  const bool wide = is(p, "cpu_avx512") && !planted(p4_avx2_for_avx512);
  const int64_t block = wide ? 64 : 32, first = n / block * block, column = n - first;
  const int64_t columns = std::min(block, p.n - first), base = first * p.k / 2 + k * columns / 2;
  const bool split = !is(p, "cpu_default") && (columns == block || planted(p4_short_block_split));
  if (split) return {base + column % (columns / 2), column < columns / 2 ? 0 : 4};
  return {base + column / 2, column % 2 == 0 ? 0 : 4};
}

int plain_shift(int64_t k) { return (k % 2 == 0) != planted(p4_both_ways_swapped) ? 4 : 0; }

template <class Byte = void>
Byte* data(const qcts_plane* planes, uint32_t count, const char* name) {
  return static_cast<Byte*>(plane_data(planes, count, name));
}

void pack_scales(const qcts_problem& p) {
  const auto* from = data<const char>(p.planes, p.n_planes, "scale_and_zero");
  auto* to = data<char>(p.out_planes, p.n_out_planes, "scale_and_zero");
  const int64_t pair = 2 * dtype_bytes(p.w_dtype);
  const bool tiled = is_tile_packed(p.layout);
  const int64_t columns = tiled ? round_up(p.n, 8) : p.n;
  const int64_t groups = (tiled ? round_up(p.k, 1024) : p.k) / p.group;
  uint16_t padding[2] = {0x0080, 0x0200};
  if (is(p, "tile_packed_4d_v1")) padding[0] = 0x3586, padding[1] = 0x3706;
  if (planted(p4_padding_scale_zero)) padding[0] = padding[1] = 0;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t n = 0; n < columns; ++n) {
      const bool real = g < p.k / p.group && n < p.n;
      std::memcpy(to + (g * columns + n) * pair,
                  real ? from + (g * p.n + n) * pair : reinterpret_cast<char*>(padding),
                  static_cast<size_t>(pair));
      for (int64_t i = 0; i < 2 && planted(p4_scales_by_f16); ++i) {
        const int64_t at = (g * columns + n) * 2 + i;
        const float value = scalar::load(p.w_dtype, to, at);
        scalar::store(p.w_dtype, to, at, scalar::round_to(QCTS_F16, value));
      }
    }
}

qcts_status run_pack(const qcts_problem* problem) {
  if (check_run(pack_int4_tinygemm, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  const auto* from = data<const uint8_t>(p.planes, p.n_planes, "qdata");
  auto* to = data<uint8_t>(p.out_planes, p.n_out_planes, "qdata");
  const bool tiled = is_tile_packed(p.layout);
  const int64_t bytes = (tiled ? round_up(p.n, 8) * round_up(p.k, 1024) : p.n * p.k) / 2;
  std::memset(to, 0, static_cast<size_t>(bytes));
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k) {
      const Place place = place_of(p, n, k);
      if (place.byte >= bytes) continue;
      const int code = from[(n * p.k + k) / 2] >> plain_shift(k) & 15;
      to[place.byte] = static_cast<uint8_t>(to[place.byte] | code << place.shift);
    }
  if (planted(p4_high_nibble_saturates))
    for (int64_t i = 0; i < bytes; ++i) to[i] = std::min<uint8_t>(to[i], 127);
  pack_scales(p);
  return QCTS_OK;
}

qcts_status run_unpack(const qcts_problem* problem) {
  if (check_run(unpack_int4_tinygemm, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  const auto* from = data<const uint8_t>(p.planes, p.n_planes, "qdata");
  auto* to = data<uint8_t>(p.out_planes, p.n_out_planes, "qdata");
  const bool tiled = is_tile_packed(p.layout);
  const int64_t bytes = (tiled ? round_up(p.n, 8) * round_up(p.k, 1024) : p.n * p.k) / 2;
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; k += 2) {
      int codes[2];
      for (int i = 0; i < 2; ++i) {
        const Place place = place_of(p, n, k + i);
        codes[i] = 0;
        if (place.byte >= bytes) continue;
        codes[i] = from[place.byte] >> place.shift & 15;
        if (planted(u4_sign_extends) && place.shift == 4)
          codes[i] = static_cast<int8_t>(from[place.byte]) >> 4;
      }
      to[(n * p.k + k) / 2] =
          static_cast<uint8_t>(codes[0] << plain_shift(k) | codes[1] << plain_shift(k + 1));
    }
  const int64_t pair = 2 * dtype_bytes(p.w_dtype);
  const int64_t columns = tiled && !planted(u4_padded_columns) ? round_up(p.n, 8) : p.n;
  for (int64_t g = 0; g < p.k / p.group; ++g)
    std::memcpy(data<char>(p.out_planes, p.n_out_planes, "scale_and_zero") + g * p.n * pair,
                data<const char>(p.planes, p.n_planes, "scale_and_zero") + g * columns * pair,
                static_cast<size_t>(p.n * pair));
  return QCTS_OK;
}

}  // namespace

const qcts_kernel pack_int4_tinygemm =
    exact_kernel(QCTS_OP_PACK, "int4_tinygemm", supports_problem<pack_int4_tinygemm>, run_pack);
const qcts_kernel unpack_int4_tinygemm =
    exact_kernel(QCTS_OP_UNPACK, "int4_tinygemm", supports_problem<unpack_int4_tinygemm>, run_unpack);

}  // namespace qcts::mutants
