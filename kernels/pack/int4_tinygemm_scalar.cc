// SPDX-License-Identifier: BSD-3-Clause
// Packs codes of "plain" (even k in the high nibble) into the four layouts of tinygemm. cpu_*: ATen's
// weight_to_int4pack_kernel (aten/src/ATen/native/cpu/int4mm_kernel.cpp, PyTorch 2.13), whose bytes depend on
// the vector width that ATen dispatched to. tile_packed_4d: _convert_weight_to_int4pack with 8 inner k tiles
// (aten/src/ATen/native/cuda/int4mm.cu), after torchao's padding of k to 1024 and n to 8.
#include <cstring>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

struct Task {
  const qcts_problem* problem;
  const uint8_t* in;
  const char* in_scales;
  uint8_t* out;
  char* out_scales;
  int64_t block;  // columns that a full block of a cpu layout interleaves
  int64_t split;  // distance in n of the two nibbles of a byte in a full block
};

uint8_t code_at(const Task& task, int64_t n, int64_t k) {
  const uint8_t pair = task.in[(n * task.problem->k + k) / 2];
  return k % 2 == 0 ? pair >> 4 : pair & 15;
}

// A block holds all k of its columns: block / 2 bytes for each k. Byte d of a full block pairs column low(d)
// with low(d) + split. Blocks that n cuts short, and all of cpu_default's, pair neighbours.
void pack_block(const Task& task, int64_t first_n, int64_t columns) {
  const int64_t k_count = task.problem->k;
  uint8_t* out = task.out + first_n * k_count / 2;
  const int64_t split = columns == task.block ? task.split : 1;
  for (int64_t k = 0; k < k_count; ++k)
    for (int64_t byte = 0; byte < columns / 2; ++byte) {
      const int64_t low = split == 1 ? 2 * byte : byte;
      const uint8_t low_code = code_at(task, first_n + low, k),
                    high_code = code_at(task, first_n + low + split, k);
      out[k * columns / 2 + byte] = static_cast<uint8_t>(high_code << 4 | low_code);
    }
}

void pack_blocks(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  for (int64_t n = first; n < last; n += task.block)
    pack_block(task, n, last - n < task.block ? last - n : task.block);
}

// Word [tile][k_tile][lane][j], nibble p: n = 8 tile + lane / 4, k = 16 (8 k_tile + 2 j + p / 2 % 2) + 2
// (lane % 4) + 8 (p % 2) + p / 4.
uint32_t tile_word(const Task& task, int64_t tile, int64_t k_tile, int lane, int j) {
  uint32_t word = 0;
  const int64_t n = 8 * tile + lane / 4;
  for (int p = 0; p < 8; ++p) {
    const int64_t k = 16 * (8 * k_tile + 2 * j + p / 2 % 2) + 2 * (lane % 4) + 8 * (p % 2) + p / 4;
    const uint32_t code = n < task.problem->n && k < task.problem->k ? code_at(task, n, k) : 0;
    word |= code << 4 * p;
  }
  return word;
}

void pack_tiles(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const int64_t k_tiles = (task.problem->k + 1023) / 1024 * 8;
  for (int64_t tile = first; tile < last; ++tile)
    for (int64_t k_tile = 0; k_tile < k_tiles; ++k_tile)
      for (int lane = 0; lane < 32; ++lane)
        for (int j = 0; j < 4; ++j) {
          const uint32_t word = tile_word(task, tile, k_tile, lane, j);
          std::memcpy(task.out + 4 * (((tile * k_tiles + k_tile) * 32 + lane) * 4 + j), &word, 4);
        }
}

// A padding group gets what quantizing zeros gives: the minimum scale of the layout's producer, and 8 times
// that as its zero. In bfloat16 the minimum is 2^-126, its smallest normal number, or 1e-6
// (tile_packed_4d_v1).
void pad_scales(const Task& task) {
  const qcts_problem& p = *task.problem;
  constexpr uint16_t kSmallest[2] = {0x0080, 0x0200}, kMillionth[2] = {0x3586, 0x3706};
  const uint16_t* padding = std::strcmp(p.layout, "tile_packed_4d") == 0 ? kSmallest : kMillionth;
  const int64_t columns = (p.n + 7) / 8 * 8, groups = (p.k + 1023) / 1024 * 1024 / p.group;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t n = 0; n < columns; ++n) {
      const bool real = group < p.k / p.group && n < p.n;
      const void* source = real ? static_cast<const void*>(task.in_scales + 4 * (group * p.n + n)) : padding;
      std::memcpy(task.out_scales + 4 * (group * columns + n), source, 4);
    }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_pack_int4_tinygemm_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  Task task = {problem,
               static_cast<const uint8_t*>(qcts::plane_data(p.planes, p.n_planes, "qdata")),
               static_cast<const char*>(qcts::plane_data(p.planes, p.n_planes, "scale_and_zero")),
               static_cast<uint8_t*>(qcts::plane_data(p.out_planes, p.n_out_planes, "qdata")),
               static_cast<char*>(qcts::plane_data(p.out_planes, p.n_out_planes, "scale_and_zero")),
               32,
               1};
  if (qcts::is_tile_packed(p.layout)) {
    qcts::parallel_for(p.threads, (p.n + 7) / 8, 1, pack_tiles, &task);
    pad_scales(task);
    return QCTS_OK;
  }
  if (std::strcmp(p.layout, "cpu_avx512") == 0) task.block = 64, task.split = 32;
  if (std::strcmp(p.layout, "cpu_avx2") == 0) task.split = 16;
  qcts::parallel_for(p.threads, p.n, task.block, pack_blocks, &task);
  std::memcpy(task.out_scales, task.in_scales,
              static_cast<size_t>(p.k / p.group * p.n * 2 * qcts::dtype_bytes(p.w_dtype)));
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_pack_int4_tinygemm_scalar =
    qcts::exact_entry(QCTS_OP_PACK, "int4_tinygemm", "scalar",
                      "one nibble at a time by index map; bound by the transposing reads",
                      {qcts::supports_problem<qcts_kernel_pack_int4_tinygemm_scalar>, run});
