// SPDX-License-Identifier: BSD-3-Clause
// Pack and unpack move codes and scales and compute nothing, so they are bound by bytes. Both sides move 16
// bytes per lane, and lanes exchange them through shared memory. If buffers are not at multiples of 16 bytes,
// or rows do not fill 16 bytes, both sides move one byte at a time.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/stage.h"

namespace qcts::sm80 {
namespace {

// Loads or stores 16 bytes of a row of `row_bytes`, from `at` on. Bytes beyond the row are read as 0, and are
// not stored.
template <bool kChunks>
QCTS_DEVICE Words4 load_part(const uint8_t* row, int64_t at, int64_t row_bytes) {
  Words4 part = {};
  if constexpr (kChunks) {
    if (at < row_bytes) part = load_stream(row + at);
  } else {
    for (int i = 0; i < 16; ++i)
      if (at + i < row_bytes)
        part.word[i / 4] |= static_cast<uint32_t>(load_global<uint8_t>(row + at + i)) << 8 * (i % 4);
  }
  return part;
}
template <bool kChunks>
QCTS_DEVICE void store_part(uint8_t* row, int64_t at, int64_t row_bytes, const Words4& part) {
  if constexpr (kChunks) {
    if (at < row_bytes) store_global(row + at, part);
  } else {
    for (int i = 0; i < 16; ++i)
      if (at + i < row_bytes)
        store_global(row + at + i, static_cast<uint8_t>(part.word[i / 4] >> 8 * (i % 4)));
  }
}

// Planes that are only copied.

// Copies [from_rows, from_columns] of Word at `from` to [rows, columns] at `to`. Elements that `from` does
// not have become padding[column % 2].
struct Copy {
  uint8_t* to;
  const uint8_t* from;
  int64_t rows, columns, from_rows, from_columns;
  uint32_t padding[2];
};
template <class Word>
__global__ void __launch_bounds__(kBlockThreads) copy_words(const Copy p) {
  const auto across = static_cast<uint32_t>((p.columns + kBlockThreads - 1) / kBlockThreads);
  const int64_t row = block_x() / across,
                column = static_cast<int64_t>(block_x() % across) * kBlockThreads + thread_index();
  if (column >= p.columns) return;
  uint8_t* to = p.to + (row * p.columns + column) * sizeof(Word);
  if (row < p.from_rows && column < p.from_columns)
    store_global(to, load_global<Word>(p.from + (row * p.from_columns + column) * sizeof(Word)));
  else if constexpr (sizeof(Word) <= 4)
    store_global(to, static_cast<Word>(column % 2 == 0 ? p.padding[0] : p.padding[1]));
}
template <class Word>
qcts_status launch_copy(const qcts_problem& p, const Copy& copy) {
  return launch(p,
                {.blocks_x = copy.rows * blocks_for(copy.columns, kBlockThreads), .threads = kBlockThreads},
                copy_words<Word>, copy);
}

// Copies each output plane except `name` as it is.
[[maybe_unused]] qcts_status copy_other_planes(const qcts_problem& p, const char* name) {
  for (uint32_t i = 0; i < p.n_out_planes; ++i) {
    const qcts_plane& plane = p.out_planes[i];
    if (same_text(plane.name, name)) continue;
    int64_t bytes = dtype_bytes(plane.dtype);
    for (uint32_t d = 0; d < plane.ndim; ++d) bytes *= plane.shape[d];
    const auto* from = static_cast<const uint8_t*>(in_plane(p, plane.name));
    auto* to = static_cast<uint8_t*>(plane.data);
    const bool chunks = bytes % 16 == 0 && is_multiple_of_16(from) && is_multiple_of_16(to);
    const int64_t words = chunks ? bytes / 16 : bytes;
    const Copy copy = {to, from, 1, words, 1, words, {}};
    const qcts_status status = chunks ? launch_copy<Words4>(p, copy) : launch_copy<uint8_t>(p, copy);
    if (status != QCTS_OK) return status;
  }
  return QCTS_OK;
}

// tile_packed_4d.
// A tile of 8 rows and 128 columns has 32 lanes of four words. A warp handles one tile here. Word j of lane
// 4 * r + c holds elements of row r. Columns 32 * j + 2 * c + {0, 8, 16, 24} are in its low nibbles, and the
// columns after them are in its high ones. So 16 bytes of a row, 32 columns, become word j of the row's four
// lanes.

struct Tiles {
  uint8_t* to;
  const uint8_t* from;
  int64_t n, row_bytes;
  uint32_t across;  // tiles along k, rounded up to a multiple of 8
};

// These convert between byte c of plain word w, with the even column in the high nibble, and nibbles w and
// w + 4 of packed word c.
QCTS_DEVICE Words4 packed_words(const Words4& plain) {
  Words4 packed = {};
  QCTS_UNROLL
  for (int w = 0; w < 4; ++w) {
    QCTS_UNROLL
    for (int c = 0; c < 4; ++c) {
      const uint32_t pair = plain.word[w] >> 8 * c;
      packed.word[c] |= (pair >> 4 & 15) << 4 * w | (pair & 15) << (16 + 4 * w);
    }
  }
  return packed;
}
QCTS_DEVICE Words4 plain_words(const Words4& packed) {
  Words4 plain = {};
  QCTS_UNROLL
  for (int w = 0; w < 4; ++w) {
    QCTS_UNROLL
    for (int c = 0; c < 4; ++c)
      plain.word[w] |= (packed.word[c] >> 4 * w & 15) << (8 * c + 4) | (packed.word[c] >> (16 + 4 * w) & 15)
                                                                           << 8 * c;
  }
  return plain;
}

template <bool kPacks, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) move_tiles(const Tiles p) {
  const int64_t index = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index(), tile = index / p.across;
  if (tile * 8 >= p.n) return;
  const uint32_t lane = lane_index(), quad = lane / 4 * 4, j = lane % 4;
  const int64_t row = tile * 8 + lane / 4, at = index % p.across * 64 + 16 * j,
                packed_at = index * 512 + 16 * lane;
  uint8_t* stage = stage_of_warp();
  const int64_t row_bytes = row < p.n ? p.row_bytes : 0;
  if constexpr (kPacks) {
    const Words4 packed = packed_words(load_part<kChunks>(p.from + row * p.row_bytes, at, row_bytes));
    QCTS_UNROLL
    for (uint32_t c = 0; c < 4; ++c) store_shared(stage + 16 * (quad + c) + 4 * j, packed.word[c]);
    sync_warp();
    store_part<kChunks>(p.to, packed_at, packed_at + 16, load_shared<Words4>(stage + 16 * lane));
  } else {
    store_shared(stage + 16 * lane, load_part<kChunks>(p.from, packed_at, packed_at + 16));
    sync_warp();
    Words4 packed = {};
    QCTS_UNROLL
    for (uint32_t c = 0; c < 4; ++c) packed.word[c] = load_shared<uint32_t>(stage + 16 * (quad + c) + 4 * j);
    store_part<kChunks>(p.to + row * p.row_bytes, at, row_bytes, plain_words(packed));
  }
}

template <bool kPacks>
qcts_status move_tinygemm(const qcts_problem& p) {
  const Tiles tiles = {static_cast<uint8_t*>(out_plane(p, "qdata")),
                       static_cast<const uint8_t*>(in_plane(p, "qdata")), p.n, p.k / 2,
                       static_cast<uint32_t>((p.k + 1023) / 1024 * 8)};
  const Launch at = {.blocks_x = blocks_for((p.n + 7) / 8 * tiles.across, kBlockWarps),
                     .threads = kBlockThreads,
                     .shared_bytes = kSharedBytes};
  const bool chunks = p.k % 32 == 0 && is_multiple_of_16(tiles.to) && is_multiple_of_16(tiles.from);
  const qcts_status status = chunks ? launch(p, at, move_tiles<kPacks, true>, tiles)
                                    : launch(p, at, move_tiles<kPacks, false>, tiles);
  if (status != QCTS_OK) return status;
  // A padding group gets the parameters that quantizing zeros gives: the minimum scale of the layout's
  // producer, and 8 times that scale as its zero. In bfloat16 the minimum is 2^-126, the smallest normal
  // number, or 1e-6 (tile_packed_4d_v1).
  const bool least_normal = same_text(p.layout, "tile_packed_4d");
  const int64_t groups = p.k / p.group, padded_n = (p.n + 7) / 8 * 8;
  const int64_t padded_groups = (p.k + 1023) / 1024 * 1024 / p.group;
  Copy pairs = {static_cast<uint8_t*>(out_plane(p, "scale_and_zero")),
                static_cast<const uint8_t*>(in_plane(p, "scale_and_zero")),
                kPacks ? padded_groups : groups,
                2 * (kPacks ? padded_n : p.n),
                groups,
                2 * (kPacks ? p.n : padded_n),
                {least_normal ? 0x0080u : 0x3586u, least_normal ? 0x0200u : 0x3706u}};
  const auto addresses = reinterpret_cast<uintptr_t>(pairs.to) | reinterpret_cast<uintptr_t>(pairs.from);
  if (addresses % 4 != 0) return launch_copy<uint16_t>(p, pairs);
  pairs.columns /= 2;
  pairs.from_columns /= 2;
  pairs.padding[0] = pairs.padding[1] = pairs.padding[0] | pairs.padding[1] << 16;
  return launch_copy<uint32_t>(p, pairs);
}

// preshuffled_bf16 of int4_plain (kernels/scalar/shuffle.h).
// A tile of 16 rows and 16 columns has 128 bytes. A warp handles four tiles along k: 32 bytes of each of 16
// rows. 16 bytes of a tile are words c = 0 .. 3 and come from rows i and i + 8. Word c has bytes c and c + 4
// of both rows, even columns first.

struct Shuffle {
  uint8_t* to;
  const uint8_t* from;
  int64_t row_bytes, down;  // bytes of a row of codes; tiles along n
};

QCTS_DEVICE uint32_t joined(uint32_t low, uint32_t high, int byte) {
  const uint32_t a = low >> 8 * byte, b = high >> 8 * byte;
  return (a & 15) | (b & 15) << 4 | (a >> 4 & 15) << 16 | (b >> 4 & 15) << 20;
}

template <bool kPacks, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) move_shuffled(const Shuffle p) {
  const auto across = static_cast<uint32_t>((p.row_bytes + 31) / 32);
  const int64_t index = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  if (index >= p.down * across) return;
  const uint32_t lane = lane_index(), row = lane / 2, i = lane % 8;
  const int64_t band = index / across, at = index % across * 32;
  const int64_t tile = at / 8 + lane / 8, tiles = p.row_bytes / 8;
  const int64_t plain_row = (band * 16 + row) * p.row_bytes, tile_at = (tile * p.down + band) * 128 + 16 * i;
  const int64_t tile_end = tile < tiles ? tile_at + 16 : 0;
  uint8_t* stage = stage_of_warp();
  if constexpr (kPacks) {
    // Row r is at 32 * r.
    store_shared(stage + 16 * lane,
                 load_part<kChunks>(p.from + plain_row, at + 16 * (lane % 2), p.row_bytes));
    sync_warp();
    const auto low = load_shared<Words2>(stage + 32 * i + 8 * (lane / 8)),
               high = load_shared<Words2>(stage + 32 * (i + 8) + 8 * (lane / 8));
    Words4 words;
    QCTS_UNROLL
    for (int c = 0; c < 4; ++c)
      words.word[c] = joined(low.word[0], high.word[0], c) | joined(low.word[1], high.word[1], c) << 8;
    store_part<kChunks>(p.to, tile_at, tile_end, words);
  } else {
    store_shared(stage + 16 * lane, load_part<kChunks>(p.from, tile_at, tile_end));
    sync_warp();
    Words4 words = {};
    QCTS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const auto packed = load_shared<Words4>(stage + 128 * (lane % 2 * 2 + half) + 16 * (row % 8));
      QCTS_UNROLL
      for (int c = 0; c < 4; ++c) {
        const uint32_t mine = packed.word[c] >> 4 * (row / 8);
        words.word[2 * half] |= ((mine & 15) | (mine >> 16 & 15) << 4) << 8 * c;
        words.word[2 * half + 1] |= ((mine >> 8 & 15) | (mine >> 24 & 15) << 4) << 8 * c;
      }
    }
    store_part<kChunks>(p.to + plain_row, at + 16 * (lane % 2), p.row_bytes, words);
  }
}

template <bool kPacks>
qcts_status move_int4_plain(const qcts_problem& p) {
  if (const qcts_status status = copy_other_planes(p, "qdata"); status != QCTS_OK) return status;
  const Shuffle codes = {static_cast<uint8_t*>(out_plane(p, "qdata")),
                         static_cast<const uint8_t*>(in_plane(p, "qdata")), p.k / 2, p.n / 16};
  const Launch at = {.blocks_x = blocks_for(codes.down * blocks_for(codes.row_bytes, 32), kBlockWarps),
                     .threads = kBlockThreads,
                     .shared_bytes = kSharedBytes};
  const bool chunks = p.k % 32 == 0 && is_multiple_of_16(codes.to) && is_multiple_of_16(codes.from);
  return chunks ? launch(p, at, move_shuffled<kPacks, true>, codes)
                : launch(p, at, move_shuffled<kPacks, false>, codes);
}

// Swizzled scales of mx and nvfp4 (kernels/families/block_scales.h).
// A block handles eight consecutive tiles of 128 rows and 4 columns: 32 bytes of each of 128 rows.

struct Swizzle {
  uint8_t* to;
  const uint8_t* from;
  int64_t rows, columns;
};

template <bool kPacks, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) move_scales(const Swizzle p) {
  const int64_t tiles = (p.columns + 3) / 4, across = (p.columns + 31) / 32;
  const int64_t band = block_x() / across, first = block_x() % across * 32, thread = thread_index();
  const int64_t in_band = thread / 2, row = band * 128 + in_band, column = first + thread % 2 * 16;
  const int64_t tile = first / 4 + thread / 32, tile_at = (band * tiles + first / 4) * 512 + 16 * thread;
  const int64_t tile_end = tile < tiles ? tile_at + 16 : 0, row_bytes = row < p.rows ? p.columns : 0;
  // Shared memory holds the tiles in their order. Tile t is at 512 * t and has four columns of each row.
  uint8_t* mine = shared_memory() + thread % 2 * 2048 + in_band % 32 * 16 + in_band / 32 * 4;
  uint8_t* ordered = shared_memory() + 16 * thread;
  if constexpr (kPacks) {
    const Words4 part = load_part<kChunks>(p.from + row * p.columns, column, row_bytes);
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) store_shared(mine + 512 * i, part.word[i]);
    sync_block();
    store_part<kChunks>(p.to, tile_at, tile_end, load_shared<Words4>(ordered));
  } else {
    store_shared(ordered, load_part<kChunks>(p.from, tile_at, tile_end));
    sync_block();
    Words4 part = {};
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) part.word[i] = load_shared<uint32_t>(mine + 512 * i);
    store_part<kChunks>(p.to + row * p.columns, column, row_bytes, part);
  }
}

template <bool kPacks, int kLength>
qcts_status move_block_scales(const qcts_problem& p) {
  if (const qcts_status status = copy_other_planes(p, "scale"); status != QCTS_OK) return status;
  const Swizzle scales = {static_cast<uint8_t*>(out_plane(p, "scale")),
                          static_cast<const uint8_t*>(in_plane(p, "scale")), p.n, p.k / kLength};
  const Launch at = {.blocks_x = blocks_for(p.n, 128) * blocks_for(scales.columns, 32),
                     .threads = kBlockThreads,
                     .shared_bytes = kSharedBytes};
  const bool chunks =
      scales.columns % 16 == 0 && is_multiple_of_16(scales.to) && is_multiple_of_16(scales.from);
  return chunks ? launch(p, at, move_scales<kPacks, true>, scales)
                : launch(p, at, move_scales<kPacks, false>, scales);
}

// Nothing on a device reads ATen's layouts for processors.
template <const qcts_kernel& kKernel>
qcts_status supports_tile_packed(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = check_problem(kKernel, p, why, why_size);
  if (status != QCTS_OK || is_tile_packed(p->layout)) return status;
  return refuse(QCTS_UNSUPPORTED, why, why_size,
                "layout %s: a device packs tile_packed_4d and tile_packed_4d_v1 only",
                p->layout == nullptr ? "NULL" : p->layout);
}
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
qcts_status run_tile_packed(const qcts_problem* p) {
  return is_tile_packed(p->layout) ? run_launched<kKernel, kRun>(p) : QCTS_INVALID;
}
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
constexpr qcts_kernel tinygemm_moved(qcts_op op, const char* description) {
  return exact_entry(op, "int4_tinygemm", "sm80", description,
                     {.supports = supports_tile_packed<kKernel>,
                      .run = run_tile_packed<kKernel, kRun>,
                      .failure = last_failure});
}

}  // namespace
}  // namespace qcts::sm80
