// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for up to 16 rows of bfloat16 or float16 x and int4 weights in whole units of 32 k,
// in aligned buffers: the matrices of decoding a token. Every code is read once, so the kernel should be
// bound by reading them. On an H100 that leaves 0.28 warp instructions for each byte of codes, of which a
// scheduler issues about 60 %. The loop below executes 0.16 to 0.17 up to eight rows, 0.20 for more, and 0.22
// to 0.33 for groups below 128 (kernels/cuda/sass.json).
//
// The weight is operand a of m16n8k16, and eight rows of x are its columns. A warp computes 32 columns of y
// for every 128 k of its own. Codes, x and parameters pass through a ring in shared memory that belongs to
// the warp, so the warps of a block meet only once: at the end, they add their sums in the order of the
// warps. Warp w takes the stages w, w + warps, and so on. The number of warps depends only on the group, so
// the sums of a row of x have the same bits for each m up to 16.
//
// The order of k within a word of codes is free if x has the same. A word has eight codes. Nibbles i and i +
// 4 are pair i, which takes a shift, a logical operation and a subtraction. In plain codes those are elements
// i and i + 4 of eight neighbours (i ^ 1 and (i ^ 1) + 4 if the even k is in the high nibble), and byte
// permutations bring the words of x into that order. In tile_packed_4d they are the instruction's own.
//
// A product with a matrix of ones gives the sum of x over each group, in the lanes that need it for zeros. So
// no pass over x comes first.
//
// Chunks of 16 bytes are swapped within a row of shared memory so that no access has bank conflicts.
#pragma once

#include "kernels/cuda/copies.h"
#include "kernels/sm80/operands.h"
#include "kernels/sm80/product.h"

namespace qcts::sm80 {
namespace {

constexpr int kDecodeRows = 16;                     // the most rows of x
constexpr int kDecodeColumns = 32, kDecodeK = 128;  // of a block; of a stage
constexpr int kDecodeCodes = kDecodeColumns * kDecodeK / 2, kDecodeXRow = kDecodeK * 2;  // bytes in a stage
constexpr int kSlotBytes = 4 * kDecodeColumns;  // parameters of a group: a word for each column

// A stage has kParts parts with separate parameters: 1 if groups are multiples of 128, else 4.
template <int kColumnTiles, int kParts>
struct DecodeShape {
  // With seven warps, 16 rows of x fit into the shared memory of compute capability 8.6.
  static constexpr int kWarps = kParts == 1 ? 8 : 7, kThreads = 32 * kWarps;
  static constexpr int kStages = kColumnTiles == 1 ? 3 : 2;
  static constexpr int kColumnsOfX = 8 * kColumnTiles, kSumPitch = kColumnsOfX + 1;
  // A stage has these bytes, and kDecodeXRow more for each row of x.
  static constexpr int kStageBytes = kDecodeCodes + kParts * kSlotBytes;
  static_assert(kWarps * kStages * (kStageBytes + kColumnsOfX * kDecodeXRow) <= 99 << 10,
                "compute capability 8.6 has no more");
  static_assert(kDecodeColumns * kSumPitch * 4 <= kStages * kStageBytes, "the sums replace the stages");
};

// The groups of a launch and where their parameters are. Group g begins parameter_step * g bytes after the
// first one. `reciprocal` is 2^32 / (units of a group), rounded up; 0 stands for 2^32.
struct DecodeGroups {
  uint32_t reciprocal, parameter_step;
  template <int kParts>
  QCTS_DEVICE uint32_t of(uint32_t unit) const {
    return kParts > 1 && reciprocal == 0 ? unit : static_cast<uint32_t>(uint64_t{unit} * reciprocal >> 32);
  }
};

// The ring of a warp: first the codes and x of its stages, then their parameters.
template <class Decoder, int kColumnTiles, int kParts>
struct DecodeRing {
  using Shape = DecodeShape<kColumnTiles, kParts>;
  static constexpr bool kTiles = kReadsTiles<Decoder>;
  static constexpr int kCodeStep = kTiles ? kTileBytes : kDecodeK / 2;  // bytes from a stage to the next
  const DecodeGroups groups;
  const int rows, units;   // rows of x; units of 32 k in a row
  const int pitch;         // bytes from the codes of a stage to those of the next
  const int64_t two_rows;  // of x, in bytes
  const uint64_t policy;
  const uint8_t *codes[4], *x, *parameters;             // where this lane copies from next
  int code_place, x_place[kTiles ? 4 : 1], part_place;  // and to, in slot 0
  int code_unit, x_unit, x_row;                         // the unit, and row of x, of its chunks
  int first, first_part;                                // of the ring, in shared memory

  QCTS_DEVICE DecodeRing(const Weight& weight, const Product& p, const DecodeGroups& of_groups)
      : groups(of_groups),
        rows(static_cast<int>(p.m)),
        units(static_cast<int>(p.k / 32)),
        pitch(kDecodeCodes + rows * kDecodeXRow),
        two_rows(2 * p.ldx_bytes),
        policy(evict_first()),
        first(shared_place(shared_memory()) + static_cast<int>(warp_index()) * Shape::kStages * pitch),
        first_part(shared_place(shared_memory()) + Shape::kWarps * Shape::kStages * pitch +
                   static_cast<int>(warp_index()) * Shape::kStages * kParts * kSlotBytes) {
    const auto lane = static_cast<int>(lane_index());
    const int64_t first_n = int64_t{block_x()} * kDecodeColumns, last_n = p.n - 1;
    const int64_t stage = warp_index();
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (kTiles) {
        const int64_t down = first_n / kTileRows + i, last = last_n / kTileRows;
        codes[i] = tile_at(weight.codes, p.k, down < last ? down : last, stage) + 16 * lane;
      } else {
        const int64_t n = first_n + 8 * i + lane / 4;
        codes[i] = weight.codes + (n < last_n ? n : last_n) * (p.k / 2) + stage * kCodeStep + lane % 4 * 16;
      }
    }
    x = p.x + lane / 16 * p.ldx_bytes + stage * kDecodeXRow + lane % 16 * 16;
    if constexpr (Decoder::kPairsOfParameters) {
      const int64_t n = first_n + lane;
      parameters = weight.scales + 4 * (n < last_n ? n : last_n);
    } else {  // n is even
      const int64_t n = first_n + lane % 16 * 2;
      parameters = (lane < 16 ? weight.scales : weight.zeros) + 2 * (n < last_n ? n : last_n - 1);
    }
    code_unit = lane % 4;
    x_unit = lane % 16 / 4;
    x_row = lane / 16;
    code_place = first + (kTiles ? 16 * lane : place_of_codes(lane / 4, lane % 4));
    QCTS_UNROLL
    for (int i = 0; i < (kTiles ? 4 : 1); ++i) {
      x_place[i] = first + kDecodeCodes + place_of_x(2 * i + x_row, lane % 16);
      keep(x_place[i]);
    }
    part_place = first_part + (Decoder::kPairsOfParameters ? lane % 8 * 16 + lane / 8 * 4 : 4 * lane);
    keep(parameters);
    keep(code_unit);
    keep(x_unit);
    keep(x_row);
    keep(code_place);
    keep(part_place);
    keep(first);
    keep(first_part);
  }

  QCTS_DEVICE int codes_of(int slot) const { return first + slot * pitch; }
  QCTS_DEVICE int parts_of(int slot) const { return first_part + slot * kParts * kSlotBytes; }
  // Returns the offset of a chunk of 16 bytes. In plain codes, eight lanes read four chunks of two rows of x,
  // and in tile_packed_4d one chunk of eight rows.
  static QCTS_DEVICE int place_of_codes(int row, int chunk) { return row * 64 + (chunk ^ row / 2 % 4) * 16; }
  static QCTS_DEVICE int place_of_x(int row, int chunk) {
    return row * kDecodeXRow + (chunk ^ (row % 2 * 4 + (kTiles ? row / 2 % 4 : 0))) * 16;
  }

  // Copies a stage, which must be the warp's next. Columns beyond n repeat the last one. Beyond k, codes and
  // x are zeros.
  QCTS_DEVICE void fetch(int stage, int slot) {
    const int left = units - 4 * stage;
    int to_codes = code_place + slot * pitch;
    keep(to_codes);
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) {
      copy_async_once(shared_at(to_codes + i * kTileBytes), codes[i], policy,
                      kTiles || kParts == 1 || code_unit < left);
      codes[i] += Shape::kWarps * kCodeStep;
    }
    const uint8_t* from = x;
    int to_x[kTiles ? 4 : 1];
    QCTS_UNROLL
    for (int i = 0; i < (kTiles ? 4 : 1); ++i) {
      to_x[i] = x_place[i] + slot * pitch;
      keep(to_x[i]);
    }
    QCTS_UNROLL
    for (int i = 0; i < 4 * kColumnTiles; ++i) {
      const int place = kTiles ? to_x[i % 4] + i / 4 * 8 * kDecodeXRow : to_x[0] + i * 2 * kDecodeXRow;
      copy_async_if(2 * i + x_row < rows, shared_at(place), from, kParts == 1 || x_unit < left);
      from += two_rows;
    }
    x += Shape::kWarps * kDecodeXRow;
    QCTS_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int unit = 4 * stage + part;
      const uint32_t group =
          groups.template of<kParts>(static_cast<uint32_t>(kParts == 1 || unit < units ? unit : units - 1));
      copy_async<4>(shared_at(part_place + (slot * kParts + part) * kSlotBytes),
                    parameters + uint64_t{group} * groups.parameter_step);
    }
  }
};

// The sums of a warp.
template <class T, class Decoder, int kColumnTiles, int kParts>
struct DecodeSums {
  using Shape = DecodeShape<kColumnTiles, kParts>;
  using Ring = DecodeRing<Decoder, kColumnTiles, kParts>;
  static constexpr bool kTiles = kReadsTiles<Decoder>;
  int code_place, x_place[kColumnTiles], column;  // where this lane reads unit 0 of a stage; its first column
  float totals[2][kColumnTiles][4] = {};

  // Rows that x lacks repeat the last one; nothing stores their sums.
  QCTS_DEVICE explicit DecodeSums(int rows) : column(static_cast<int>(lane_index()) / 4) {
    const auto lane = static_cast<int>(lane_index());
    code_place = kTiles ? 16 * lane : Ring::place_of_codes(lane, 0);
    QCTS_UNROLL
    for (int i = 0; i < kColumnTiles; ++i) {
      const int row = 8 * i + (kTiles ? lane % 8 : lane / 4);
      x_place[i] = kDecodeCodes + Ring::place_of_x(row < rows ? row : rows - 1, kTiles ? lane / 8 : lane % 4);
      keep(x_place[i]);
    }
    keep(code_place);
    keep(column);
  }

  // Adds the products of a stage: totals += scale * sums + zero * the sum of x, for each part. `units_left`
  // counts the units from this stage on.
  QCTS_DEVICE void multiply(int stage, int parts, int units_left) {
    Words4 tiles[4];
    if constexpr (kTiles) {
      QCTS_UNROLL
      for (int i = 0; i < 4; ++i)
        tiles[i] = load_shared<Words4>(shared_at(stage + code_place + i * kTileBytes));
    }
    float sums[2][kColumnTiles][4] = {}, sums_of_x[kColumnTiles][4] = {};
    QCTS_UNROLL
    for (int unit = 0; unit < 4; ++unit) {
      if (kParts > 1 && unit >= units_left) break;
      uint32_t words[4], b[kColumnTiles][4];
      if constexpr (kTiles) {
        QCTS_UNROLL
        for (int i = 0; i < 4; ++i) words[i] = tiles[i].word[unit];
      } else {
        load_matrices<4>(words, shared_at(stage + (code_place ^ 16 * unit)));
      }
      QCTS_UNROLL
      for (int i = 0; i < kColumnTiles; ++i) load_x(shared_at(stage + place_in_row(x_place[i], unit)), b[i]);
      multiply_unit(words, b, sums, sums_of_x);
      if (kParts > 1 || unit == 3) scale_sums(parts + (kParts > 1 ? unit * kSlotBytes : 0), sums, sums_of_x);
    }
  }

  // Stores the sums of the warp for store_y().
  QCTS_DEVICE void store() const {
    uint8_t* to = shared_memory() +
                  (static_cast<int>(warp_index()) * kDecodeColumns + column) * Shape::kSumPitch * 4 +
                  lane_index() % 4 * 8;
    QCTS_UNROLL
    for (int i = 0; i < 8 * kColumnTiles; ++i) {
      const int tile = i / (4 * kColumnTiles), of_x = i / 4 % kColumnTiles, half = i / 2 % 2;
      store_shared(to + ((16 * tile + 8 * half) * Shape::kSumPitch + 8 * of_x + i % 2) * 4,
                   bits_of(totals[tile][of_x][i % 4]));
    }
  }

 private:
  // Returns the place of a unit if that of unit 0 is `place`. In plain codes only the lower bit is swapped.
  static QCTS_DEVICE int place_in_row(int place, int unit) {
    return kTiles ? place ^ 64 * unit : (place ^ 64 * (unit % 2)) + 64 * (unit / 2 * 2);
  }
  // Loads the operand b of eight rows of x.
  static QCTS_DEVICE void load_x(const uint8_t* from, uint32_t (&b)[4]) {
    if constexpr (kTiles) {
      load_matrices<4>(b, from);
    } else {
      const auto words = load_shared<Words4>(from);
      QCTS_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int k = Decoder::kFirstOfPair ^ i;
        b[i] = permute_bytes(words.word[k / 2], words.word[2 + k / 2], k % 2 == 0 ? 0x5410 : 0x7632);
      }
    }
  }

  // words[i] has codes of columns 8 * i to 8 * i + 7.
  static QCTS_DEVICE void multiply_unit(const uint32_t (&words)[4], const uint32_t (&b)[kColumnTiles][4],
                                        float (&sums)[2][kColumnTiles][4],
                                        float (&sums_of_x)[kColumnTiles][4]) {
    constexpr uint32_t kOne = twice(power<T>(0));
    constexpr uint32_t kOnes[4] = {kOne, kOne, kOne, kOne};
    uint32_t pairs[4][4];
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) Decoder::template spread_pairs<T>(words[i], pairs[i]);
    QCTS_UNROLL
    for (int of_x = 0; of_x < kColumnTiles; ++of_x) {
      QCTS_UNROLL
      for (int matrix = 0; matrix < 2; ++matrix) {
        const uint32_t x[2] = {b[of_x][2 * matrix], b[of_x][2 * matrix + 1]};
        Pair<T>::multiply(sums_of_x[of_x], kOnes, x);
        QCTS_UNROLL
        for (int tile = 0; tile < 2; ++tile) {
          const uint32_t *upper = pairs[2 * tile] + 2 * matrix, *lower = pairs[2 * tile + 1] + 2 * matrix;
          const uint32_t a[4] = {upper[0], lower[0], upper[1], lower[1]};
          Pair<T>::multiply(sums[tile][of_x], a, x);
        }
      }
    }
  }

  QCTS_DEVICE void scale_sums(int of_part, float (&sums)[2][kColumnTiles][4],
                              float (&sums_of_x)[kColumnTiles][4]) {
    Words4 pairs;
    if constexpr (Decoder::kPairsOfParameters) pairs = load_shared<Words4>(shared_at(of_part + 16 * column));
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int tile = i / 2, half = i % 2;
      float scale, zero;
      if constexpr (Decoder::kPairsOfParameters) {
        scale = T::decode(static_cast<typename T::Bits>(pairs.word[i]));
        zero = T::decode(static_cast<typename T::Bits>(pairs.word[i] >> 16));
      } else {
        const uint8_t* from = shared_at(of_part + 2 * (8 * i + column));
        scale = T::decode(load_shared<typename T::Bits>(from));
        zero = T::decode(load_shared<typename T::Bits>(from + kSlotBytes / 2));
      }
      QCTS_UNROLL
      for (int at = 0; at < 2 * kColumnTiles; ++at) {
        const int of_x = at / 2, side = at % 2;
        float& total = totals[tile][of_x][2 * half + side];
        total = fmaf(scale, sums[tile][of_x][2 * half + side], total);
        // A zero of 0 leaves infinities of x alone. No branch, since the lanes must stay together.
        const float with_zero = fmaf(zero, sums_of_x[of_x][side], total);
        total = zero != 0 ? with_zero : total;
        sums[tile][of_x][2 * half + side] = 0;
      }
    }
    QCTS_UNROLL
    for (int i = 0; i < 4 * kColumnTiles; ++i) sums_of_x[i / 4][i % 4] = 0;
  }
};

// Adds the sums of the warps, in their order, and stores y.
template <class Shape>
QCTS_DEVICE void store_y(const Product& p) {
  const int64_t first_n = int64_t{block_x()} * kDecodeColumns;
  for (int at = static_cast<int>(thread_index()); at < static_cast<int>(p.m) * kDecodeColumns;
       at += Shape::kThreads) {
    const int m = at / kDecodeColumns, column = at % kDecodeColumns;
    if (first_n + column >= p.n) continue;
    float sum = 0;
    QCTS_UNROLL
    for (int warp = 0; warp < Shape::kWarps; ++warp)
      sum += float_of(load_shared<uint32_t>(shared_memory() +
                                            ((warp * kDecodeColumns + column) * Shape::kSumPitch + m) * 4));
    store_float(p.y_dtype, p.y + m * p.ldy_bytes, first_n + column, sum + bias_of(p, first_n + column));
  }
}

template <class T, class Decoder, int kColumnTiles, int kParts>
__global__ void __launch_bounds__(DecodeShape<kColumnTiles, kParts>::kThreads, 2)
    decode(const Weight weight, const Product p, const DecodeGroups groups) {
  using Shape = DecodeShape<kColumnTiles, kParts>;
  DecodeRing<Decoder, kColumnTiles, kParts> ring(weight, p, groups);
  DecodeSums<T, Decoder, kColumnTiles, kParts> sums(ring.rows);
  const int stages = (ring.units + 3) / 4, first = static_cast<int>(warp_index());
  for (int i = 0; i < Shape::kStages - 1; ++i) {
    if (first + i * Shape::kWarps < stages) ring.fetch(first + i * Shape::kWarps, i);
    commit_copies();
  }
  int slot = 0, free = Shape::kStages - 1;
  for (int stage = first; stage < stages; stage += Shape::kWarps) {
    wait_copies<Shape::kStages - 2>();
    sync_warp();
    const int ahead = stage + (Shape::kStages - 1) * Shape::kWarps;
    if (ahead < stages) ring.fetch(ahead, free);
    commit_copies();
    sums.multiply(ring.codes_of(slot), ring.parts_of(slot), ring.units - 4 * stage);
    free = slot;
    slot = slot + 1 < Shape::kStages ? slot + 1 : 0;
  }
  wait_copies<0>();
  sync_block();
  sums.store();
  sync_block();
  store_y<Shape>(p);
}

// On the host.

// Divisions by a reciprocal are exact below this number of units of 32 k.
constexpr int64_t kMaxDecodeUnits = 1 << 16, kMaxDecodeN = 1 << 29;

// Returns true if the frame takes the problem: its x has the type of the parameters, and nothing ends within
// 32 k or begins elsewhere than at a multiple of an access.
template <class Decoder>
bool takes_decode(const qcts_problem& p, const Weight& weight) {
  if (p.x_dtype == QCTS_F32 || p.x_dtype != p.w_dtype || p.m > kDecodeRows) return false;
  if (kReadsTiles<Decoder> && p.x_dtype != QCTS_BF16) return false;
  if (p.k % 32 != 0 || weight.group % 32 != 0 || p.k / 32 >= kMaxDecodeUnits || p.n > kMaxDecodeN)
    return false;
  if (!is_multiple_of_16(weight.codes) || !has_aligned_rows(p.x, p.m, p.ldx_bytes)) return false;
  if (Decoder::kPairsOfParameters) return weight.has_pairs;
  return p.n % 2 == 0 && reinterpret_cast<uintptr_t>(weight.scales) % 4 == 0 &&
         reinterpret_cast<uintptr_t>(weight.zeros) % 4 == 0;
}

[[maybe_unused]] DecodeGroups decode_groups(const Weight& weight) {
  const int64_t units = weight.group / 32;
  return {units == 1 ? 0 : static_cast<uint32_t>(((int64_t{1} << 32) + units - 1) / units),
          static_cast<uint32_t>(2 * weight.group_step)};
}

template <class T, class Decoder, int kColumnTiles, int kParts>
qcts_status launch_decode_of(const qcts_problem& p, const Weight& weight) {
  using Shape = DecodeShape<kColumnTiles, kParts>;
  const Launch at = {.blocks_x = blocks_for(p.n, kDecodeColumns),
                     .threads = Shape::kThreads,
                     .shared_bytes = static_cast<uint32_t>(Shape::kWarps * Shape::kStages *
                                                           (Shape::kStageBytes + p.m * kDecodeXRow))};
  return launch(p, at, decode<T, Decoder, kColumnTiles, kParts>, weight, product_of<Decoder>(p, weight),
                decode_groups(weight));
}

// T is the type of x.
template <class T, class Decoder>
qcts_status launch_decode(const qcts_problem& p, const Weight& weight) {
  const bool whole = weight.group % kDecodeK == 0;
  if (p.m <= 8)
    return whole ? launch_decode_of<T, Decoder, 1, 1>(p, weight)
                 : launch_decode_of<T, Decoder, 1, 4>(p, weight);
  return whole ? launch_decode_of<T, Decoder, 2, 1>(p, weight)
               : launch_decode_of<T, Decoder, 2, 4>(p, weight);
}

}  // namespace
}  // namespace qcts::sm80
