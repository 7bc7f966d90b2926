// int4_tinygemm with TDPBF16PS; every function has internal linkage.
// y = sum over groups of scale * sum(x * (q - 8)) + zero * sum(x), plus bias.
//
// Codes are exact in bfloat16, finished weights are not. So tiles multiply x, rounded to bfloat16 unless it
// is that already, by codes; scale and zero act on the float32 sums of a group. That costs a multiply-add of
// an output for every group, two where there are zeros, while the tile unit is busy with the next group: 16
// vectors for each tile that 32, 64 or 128 k made. Rounded weights would spare it, and err by 2^-9 of every
// product.
//
// Codes become bfloat16 once for up to 512 rows of x: the groups of 512 k and 64 columns are a panel of
// 64 KiB, of which the 32 KiB of one half stay in L1 while the rows pass, and the rows of x of one panel, 512
// KiB at most, in the second cache; on an Emerald Rapids core a prototype that read x from the third cache
// fell to a quarter of its pace. These kernels themselves were never timed.
//
// Layout of a block of 64 columns: for each group, for each 8 k, 64 words, in a word k 2i in bits 4i and k 2i
// + 1 in bits 16 + 4i; then 64 scales and 64 zeros in the weight's dtype. A permutation reads the low five
// bits of 16-bit lanes, so with a table of twice 16 values one shift and one permutation make 32 weights.
#pragma once

#include "kernels/amx_tiles.h"
#include "kernels/avx512_outputs.h"
#include "kernels/entry.h"

namespace qcts::amx {
namespace {

constexpr int kTileK = 32, kPanelK = 512;
constexpr int kMostGroups = kPanelK / kTileK;  // of a panel
constexpr int kWordBytes = 4 * kColumns;       // 8 k
constexpr int kRowPadElements = 32;            // rows a power of two apart would share the sets of a cache

struct Bfloat16Frame {
  const qcts_problem* problem;
  const uint8_t* prepared;
  uint16_t* x;    // [padded m][x_stride]: each group padded to a tile's k; zeros beyond m and group
  float* x_sums;  // [padded m][groups]
};
// The groups of a panel as 32-bit pairs of bfloat16, the even k low, and their scales.
struct Panel {
  alignas(64) uint32_t pairs[kPanelK / 2][kColumns];
  alignas(64) float scale[kMostGroups][kColumns], zero[kMostGroups][kColumns];
};
// What a row of tiles adds up before the scales act on it: twice, so that one can be read while the other is
// made.
struct Parts {
  alignas(64) float of[2][2 * kTileRows * 2 * kTileRows];
};

[[maybe_unused]] int64_t padded_group(const qcts_problem& p) {
  return (p.group + kTileK - 1) / kTileK * kTileK;
}
[[maybe_unused]] int64_t groups(const qcts_problem& p) { return p.k / p.group; }
[[maybe_unused]] int64_t x_stride(const qcts_problem& p) {
  return groups(p) * padded_group(p) + kRowPadElements;
}
[[maybe_unused]] int64_t group_bytes(const qcts_problem& p) {
  return p.group / 8 * kWordBytes + 2 * kColumns * dtype_bytes(p.w_dtype);
}
[[maybe_unused]] int64_t block_bytes(const qcts_problem& p) { return groups(p) * group_bytes(p); }
[[maybe_unused]] int64_t blocks(const qcts_problem& p) { return (p.n + kColumns - 1) / kColumns; }

[[maybe_unused]] uint64_t int4_workspace_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(padded_rows(p->m) * (x_stride(*p) * 2 + groups(*p) * 4));
}
[[maybe_unused]] uint64_t int4_prepared_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(blocks(*p) * block_bytes(*p));
}

// Rows of x as bfloat16, and the sum of each group of what they became.
[[maybe_unused]] void narrow_rows(void* context, int64_t first, int64_t last) {
  const Bfloat16Frame& frame = *static_cast<const Bfloat16Frame*>(context);
  const qcts_problem& p = *frame.problem;
  const int64_t bytes = dtype_bytes(p.x_dtype), padded = padded_group(p), count = groups(p);
  for (int64_t m = first; m < last; ++m)
    for (int64_t g = 0; g < count; ++g) {
      uint16_t* to = frame.x + m * x_stride(p) + g * padded;
      const char* from = static_cast<const char*>(p.x) + m * p.ldx_bytes + g * p.group * bytes;
      __m512 sums = _mm512_setzero_ps();
      for (int64_t k = 0; k < padded; k += avx512::kLanes) {
        __m512 x = _mm512_setzero_ps();
        if (m < p.m && k + avx512::kLanes <= p.group)
          x = avx512::load16(p.x_dtype, from + k * bytes);
        else if (m < p.m && k < p.group)
          x = avx512::load_some(p.x_dtype, from + k * bytes, p.group - k);
        const __m256i narrow = avx512::to_bf16(x);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + k), narrow);
        sums = _mm512_add_ps(sums, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16)));
      }
      float lanes[avx512::kLanes], total = 0;
      _mm512_storeu_ps(lanes, sums);
      for (float lane : lanes) total += lane;
      frame.x_sums[m * count + g] = total;
    }
}

// -8 .. 7 as bfloat16, by the stored code 0 .. 15.
[[maybe_unused]] __m512i code_table() {
  alignas(64) constexpr uint16_t kCodes[32] = {
      0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80, 0x0000, 0x3F80, 0x4000,
      0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0, 0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040,
      0xC000, 0xBF80, 0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0};
  return _mm512_loadu_si512(kCodes);
}

// Group `g` of a block, as number `slot` of the panel.
[[maybe_unused]] void make_panel(const qcts_problem& p, const uint8_t* at, int64_t slot, Panel* panel) {
  const __m512i table = code_table();
  uint32_t(*pairs)[kColumns] = panel->pairs + slot * padded_group(p) / 2;
  for (int64_t k = 0; k < p.group; k += 8, at += kWordBytes)
    for (int v = 0; v < kColumns; v += avx512::kLanes) {
      _mm_prefetch(reinterpret_cast<const char*>(at + 4 * v + kPrefetchBytes), _MM_HINT_T0);
      const __m512i words = _mm512_loadu_si512(at + 4 * v);
      const auto store = [&](int pair, __m512i codes) {
        _mm512_storeu_si512(&pairs[k / 2 + pair][v], _mm512_permutexvar_epi16(codes, table));
      };
      store(0, words);
      store(1, _mm512_srli_epi16(words, 4));
      store(2, _mm512_srli_epi16(words, 8));
      store(3, _mm512_srli_epi16(words, 12));
    }
  if (p.group < padded_group(p))
    std::memset(pairs[p.group / 2], 0, static_cast<size_t>(padded_group(p) - p.group) / 2 * sizeof pairs[0]);
  const int64_t bytes = dtype_bytes(p.w_dtype);
  for (int v = 0; v < kColumns; v += avx512::kLanes) {
    _mm512_storeu_ps(&panel->scale[slot][v], avx512::load16(p.w_dtype, at + v * bytes));
    _mm512_storeu_ps(&panel->zero[slot][v], avx512::load16(p.w_dtype, at + (kColumns + v) * bytes));
  }
}

// totals[rows][kCount columns] += scale * part + zero * sum of x.
template <int kCount>
void apply_scales(const float* part, const float* scale, const float* zero, const float* x_sums,
                  int64_t ld_sums, int64_t rows, float (*totals)[kColumns], int64_t first_n) {
  constexpr int kVectors = kCount / avx512::kLanes;
  __m512 scales[kVectors], zeros[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    scales[v] = _mm512_loadu_ps(scale + first_n + v * avx512::kLanes);
    zeros[v] = _mm512_loadu_ps(zero + first_n + v * avx512::kLanes);
  }
  for (int64_t m = 0; m < rows; ++m) {
    const __m512 x_sum = _mm512_set1_ps(x_sums[m * ld_sums]);
    for (int v = 0; v < kVectors; ++v) {
      float* at = &totals[m][first_n + v * avx512::kLanes];
      const __m512 sum = _mm512_loadu_ps(part + m * kCount + v * avx512::kLanes);
      const __m512 total = _mm512_fmadd_ps(scales[v], sum, _mm512_loadu_ps(at));
      _mm512_storeu_ps(at, _mm512_fmadd_ps(zeros[v], x_sum, total));
    }
  }
}

// The rows of x from `first_m` on, which meet a panel.
struct Meeting {
  const Bfloat16Frame* frame;
  const Panel* panel;
  int64_t first_m, first_group, count;  // groups of the panel
  float (*totals)[kColumns];
  Parts* parts;

  Operands operands(int64_t slot, int64_t m) const {
    const int64_t padded = padded_group(*frame->problem), stride = x_stride(*frame->problem);
    return {reinterpret_cast<const uint8_t*>(panel->pairs + slot * padded / 2), padded / kTileK,
            frame->x + (first_m + m) * stride + (first_group + slot) * padded, 2 * stride, true};
  }
  const float* x_sums(int64_t slot, int64_t m) const {
    return frame->x_sums + (first_m + m) * groups(*frame->problem) + first_group + slot;
  }
};

[[maybe_unused]] void meet_pair(const Meeting& meeting, int64_t m, int64_t first_n) {
  constexpr int kCount = 2 * kTileRows;
  for (int64_t slot = 0; slot < meeting.count; ++slot) {
    const Operands of = meeting.operands(slot, m);
    float* part = meeting.parts->of[slot % 2];
    multiply_two<true>(of, 4 * first_n, static_cast<const char*>(of.x), reinterpret_cast<char*>(part),
                       4 * kCount, false);
    apply_scales<kCount>(part, meeting.panel->scale[slot], meeting.panel->zero[slot], meeting.x_sums(slot, m),
                         groups(*meeting.frame->problem), 2 * kTileRows, meeting.totals + m, first_n);
  }
}
[[maybe_unused]] void meet_one(const Meeting& meeting, int64_t m, int64_t rows) {
  for (int64_t slot = 0; slot < meeting.count; ++slot) {
    const Operands of = meeting.operands(slot, m);
    float* part = meeting.parts->of[slot % 2];
    multiply_one<true>(of, static_cast<const char*>(of.x), reinterpret_cast<char*>(part), kRowBytes, false);
    apply_scales<kColumns>(part, meeting.panel->scale[slot], meeting.panel->zero[slot],
                           meeting.x_sums(slot, m), groups(*meeting.frame->problem), rows, meeting.totals + m,
                           0);
  }
}

[[maybe_unused]] void multiply_block(const Bfloat16Frame& frame, int64_t block, int64_t first_m,
                                     int64_t rows) {
  const qcts_problem& p = *frame.problem;
  Panel panel;
  Parts parts;
  alignas(64) float totals[kRows][kColumns];
  std::memset(totals, 0, static_cast<size_t>(padded_rows(rows)) * sizeof totals[0]);
  const uint8_t* codes = frame.prepared + block * block_bytes(p);
  const int64_t most = kPanelK / padded_group(p), tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t g = 0; g < groups(p); g += most) {
    const int64_t count = groups(p) - g < most ? groups(p) - g : most;
    for (int64_t slot = 0; slot < count; ++slot)
      make_panel(p, codes + (g + slot) * group_bytes(p), slot, &panel);
    const Meeting meeting = {&frame, &panel, first_m, g, count, totals, &parts};
    for (int64_t first_n = 0; first_n < kColumns; first_n += kColumns / 2)
      for (int64_t tile = 0; tile + 2 <= tiles; tile += 2) meet_pair(meeting, tile * kTileRows, first_n);
    const int64_t m = tiles / 2 * 2 * kTileRows;
    if (m < rows) meet_one(meeting, m, rows - m);
  }
  avx512::store_rows(p, first_m, rows, block * kColumns, 1, totals);
}

[[maybe_unused]] void multiply_blocks(void* context, int64_t first, int64_t last) {
  const Bfloat16Frame& frame = *static_cast<const Bfloat16Frame*>(context);
  const int64_t m_count = frame.problem->m;
  open_tiles(m_count);
  for (int64_t block = first; block < last; ++block)
    for (int64_t m = 0; m < m_count; m += kRows)
      multiply_block(frame, block, m, m_count - m < kRows ? m_count - m : kRows);
  close_tiles();
}

[[maybe_unused]] void run_int4(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  auto* x = static_cast<uint16_t*>(p.workspace);
  const int64_t rows = padded_rows(p.m);
  Bfloat16Frame frame = {problem, static_cast<const uint8_t*>(p.prepared), x,
                         reinterpret_cast<float*>(x + rows * x_stride(p))};
  parallel_for(p.threads, rows, 8, narrow_rows, &frame);
  parallel_for(p.threads, blocks(p), 1, multiply_blocks, &frame);
}

}  // namespace
}  // namespace qcts::amx
