// SPDX-License-Identifier: BSD-3-Clause
// Unpacks the four layouts of tinygemm to "plain" (even k in the high nibble). Each layout answers one
// question: in which byte and nibble is code (n, k)? The layouts follow ATen's int4mm_kernel.cpp (cpu_*) and
// int4mm.cu (tile_packed_4d), PyTorch 2.13. Padding of tile_packed_4d is dropped.
#include <cstring>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

struct Place {
  int64_t byte;
  int shift;
};
using Locate = Place (*)(const qcts_problem& p, int64_t n, int64_t k);

struct Task {
  const qcts_problem* problem;
  const uint8_t* in;
  uint8_t* out;
  Locate locate;
};

// Columns n and n + 1 share a byte.
Place in_neighbours(const qcts_problem& p, int64_t block_n, int64_t columns, int64_t column, int64_t k) {
  return {block_n * p.k / 2 + k * columns / 2 + column / 2, column % 2 == 0 ? 0 : 4};
}

// Blocks of `block` columns. Columns `split` apart share a byte, the lower one in the low nibble. A short
// last block pairs neighbours.
Place in_blocks(const qcts_problem& p, int64_t block, int64_t split, int64_t n, int64_t k) {
  const int64_t block_n = n / block * block, column = n - block_n;
  const int64_t columns = p.n - block_n < block ? p.n - block_n : block;
  if (columns < block) return in_neighbours(p, block_n, columns, column, k);
  return {block_n * p.k / 2 + k * block / 2 + column % split, column < split ? 0 : 4};
}

Place cpu_avx512(const qcts_problem& p, int64_t n, int64_t k) { return in_blocks(p, 64, 32, n, k); }

Place cpu_avx2(const qcts_problem& p, int64_t n, int64_t k) { return in_blocks(p, 32, 16, n, k); }

Place cpu_default(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t block_n = n / 32 * 32;
  return in_neighbours(p, block_n, p.n - block_n < 32 ? p.n - block_n : 32, n - block_n, k);
}

// A word holds k = base + {0, 8, 16, 24} in its low four nibbles and base + 1 + {...} in the high ones.
Place tile_packed_4d(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t k_tiles = (p.k + 1023) / 1024 * 8;
  const int64_t lane = n % 8 * 4 + k % 8 / 2, j = k % 128 / 32;
  const int64_t word = ((n / 8 * k_tiles + k / 128) * 32 + lane) * 4 + j;
  const int64_t nibble = k % 2 * 4 + k % 32 / 8;
  return {4 * word + nibble / 2, nibble % 2 == 0 ? 0 : 4};
}

void unpack_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  const auto code_at = [&](int64_t n, int64_t k) {
    const Place place = task.locate(p, n, k);
    return task.in[place.byte] >> place.shift & 15;
  };
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += 2)
      task.out[(n * p.k + k) / 2] = static_cast<uint8_t>(code_at(n, k) << 4 | code_at(n, k + 1));
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_unpack_int4_tinygemm_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  Task task = {problem, static_cast<const uint8_t*>(qcts::plane_data(p.planes, p.n_planes, "qdata")),
               static_cast<uint8_t*>(qcts::plane_data(p.out_planes, p.n_out_planes, "qdata")), cpu_default};
  if (std::strcmp(p.layout, "cpu_avx512") == 0) task.locate = cpu_avx512;
  if (std::strcmp(p.layout, "cpu_avx2") == 0) task.locate = cpu_avx2;
  const bool tiled = qcts::is_tile_packed(p.layout);
  if (tiled) task.locate = tile_packed_4d;
  qcts::parallel_for(p.threads, p.n, 1, unpack_rows, &task);

  const auto* in_scales = static_cast<const char*>(qcts::plane_data(p.planes, p.n_planes, "scale_and_zero"));
  auto* out_scales = static_cast<char*>(qcts::plane_data(p.out_planes, p.n_out_planes, "scale_and_zero"));
  const int64_t pair_bytes = 2 * qcts::dtype_bytes(p.w_dtype), in_columns = tiled ? (p.n + 7) / 8 * 8 : p.n;
  for (int64_t group = 0; group < p.k / p.group; ++group)
    std::memcpy(out_scales + group * p.n * pair_bytes, in_scales + group * in_columns * pair_bytes,
                static_cast<size_t>(p.n * pair_bytes));
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_unpack_int4_tinygemm_scalar =
    qcts::exact_entry(QCTS_OP_UNPACK, "int4_tinygemm", "scalar",
                      "one nibble at a time by index map; bound by the transposing reads",
                      {qcts::supports_problem<qcts_kernel_unpack_int4_tinygemm_scalar>, run});
