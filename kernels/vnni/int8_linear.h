// SPDX-License-Identifier: BSD-3-Clause
// Macro-kernel of `linear` with int8 rows of x, for variants that multiply bytes.
// One instruction adds four products to a 32-bit sum (avxvnni, avx512vnni, amx).
// For 4-bit codes, avx2 adds products in 16 bits.
// y is sx times the sum over groups of sw * sum((qx - zx) * (qw - zw)), plus bias.
//
// The instruction needs one unsigned factor, and that is the weight.
// Packing stores u = qw + offset, so x stays as it was quantized,
// and S = sum(qx * u) is an exact integer in every order. Let o = offset + zw of a column. Then
//   sum((qx - zx) * (qw - zw)) = S - zx * sum(u) - o * sum(qx - zx)    for a whole row,
//                               = S - sum(qx) * o - zx * sum(u - o)     for a group that is a part of a row.
// For a column, the second form is one multiply-add of two pairs of 16 bits:
// (-o, -sum(u - o)) of the weight and (sum(qx), zx) of x. -sum(u - o) fits for 128 values of k.
// So a group of 256 has a second pair (0, -sum(u - o)) for its other half.
//
// A block of 64 columns is one linear stream. Each group begins with its codes, in steps of 256 bytes.
// A step has 4 values of k of all columns, or 8 if two codes share a byte.
// Each 4 consecutive codes of a column are adjacent.
// If groups are parts of a row, 64 scales and 64 pairs follow.
// For a whole row, 64 scales, 64 zero points and 64 sum(u) follow. 16 steps are also the rows of 4 tiles.
// Memory gave a core of an Emerald Rapids server at most 18 GB/s,
// and only with software prefetches 4 to 8 KiB ahead.
// Without them, a 4-bit weight was read at 2/3 of the speed.
#pragma once

#include "kernels/avx2/int8.h"
#include "kernels/avx2/streams.h"
#include "kernels/families/entry.h"
#include "kernels/families/nibble_words.h"
#include "kernels/vnni/concepts.h"

namespace qcts::vnni {
namespace {

using avx2::RowRecipe;

constexpr int kColumns = 64;
constexpr int kStepBytes = 4 * kColumns;
constexpr int kPrefetchBytes = 8192;
// padding; rows that are a power of two apart would share the sets of a cache
constexpr int kRowPadBytes = 64;
constexpr int64_t kMaxK = 65536;        // 128 * 255 * 65536 < 2^31
constexpr int64_t kMaxGroup = 256;      // 255 * 255 * 256 < 2^24: the sum of a group is exact in float32
constexpr int64_t kPairElements = 128;  // 255 * 128 < 2^15

using Sums = int32_t (*)[kColumns];

// Positions of weights and of rows of x, computed once per call.
// Computing them once per group took half of the time at m = 1 with groups of 32.
struct Layout {
  int64_t group, padded_group, groups, blocks;
  uint32_t scale_dtype;
  // of one column: size in bytes of its scale; number of pairs, for a part of a row
  int64_t scale_bytes, pairs;
  int64_t code_bytes, group_bytes, block_bytes;
  int64_t x_stride;
};
struct LinearCall {
  const qcts_problem* problem;
  Layout layout;
  const uint8_t* prepared;
  bool prefetches;  // set if the weight is passed over only once
  int8_t* x;        // [padded m][x_stride]
  int32_t* x_sums;  // [m][groups]: sum(qx - zx) of a whole row, or the pair (sum(qx), zx) of a part of a row
  RowScale* rows;   // [m]
  RowRecipe recipe;
};
// Finishes a group that is a part of a row. The pointers refer to the first of several rows.
struct Epilogue {
  const uint8_t* tail;  // scales and pairs of the group
  uint32_t scale_dtype;
  int64_t scale_bytes;  // size in bytes of the scale of a column
  bool two_pairs;
  const int32_t* x_pairs;  // pairs of x for the group; consecutive rows are `groups` pairs apart
  int64_t groups;
  float (*totals)[kColumns];
};
// Steps of one group, or of several consecutive groups, and the rows by which they are multiplied.
struct PackedPanel {
  const uint8_t* codes;
  int64_t groups;
  // number of steps of a group; distance in bytes from its codes to the codes of the next group
  int64_t steps, bytes;
  const int8_t* x;
  int64_t ldx;
  bool first;  // first part of its group: sums begin at 0
  // epilogue of the first group; NULL unless groups are parts of a row and end here
  const Epilogue* epilogue;
  bool prefetches;  // the same as in LinearCall
};

// kernels/vnni/concepts.h lists the members of a Scheme and of a MicroKernel.
// A Vector has the lanes in which x is quantized and sums become outputs.
template <QuadScheme Scheme>
Layout layout_of(const qcts_problem& p) {
  Layout at = {};
  at.group = Scheme::group(p);
  const int64_t pad = Scheme::pad_k(at.group);
  at.padded_group = (at.group + pad - 1) / pad * pad;
  at.groups = p.k / at.group;
  at.blocks = (p.n + kColumns - 1) / kColumns;
  at.scale_dtype = Scheme::scale_dtype(p);
  at.scale_bytes = dtype_bytes(at.scale_dtype);
  at.pairs = at.groups == 1 ? 0 : (at.group + kPairElements - 1) / kPairElements;
  at.code_bytes = at.padded_group / (4 * Scheme::kQuads) * kStepBytes;
  at.group_bytes = at.code_bytes + kColumns * (at.scale_bytes + (at.groups == 1 ? 5 : 4 * at.pairs));
  at.block_bytes = at.groups * at.group_bytes;
  at.x_stride = at.groups * at.padded_group + kRowPadBytes;
  return at;
}

// Parameters of the columns of a block that the outputs need, loaded once per block.
struct Columns {
  alignas(64) double scale[kColumns], zero[kColumns], sum_of_codes[kColumns], bias[kColumns];
};
template <class Vector, QuadScheme Scheme>
void load_columns(const LinearCall& call, const uint8_t* tail, int64_t first_n, Columns* out) {
  const qcts_problem& p = *call.problem;
  const uint32_t dtype = call.layout.scale_dtype;
  const int64_t bytes = call.layout.scale_bytes, bias_bytes = dtype_bytes(p.bias_dtype);
  for (int n = 0; n < kColumns; n += Vector::kLanes) {
    const int64_t some = p.n - first_n - n < Vector::kLanes ? p.n - first_n - n : Vector::kLanes;
    auto bias = Vector::set(0);
    if (p.bias != nullptr && some > 0)
      bias = Vector::load_some(p.bias_dtype, static_cast<const char*>(p.bias) + (first_n + n) * bias_bytes,
                               some);
    Vector::store_doubles(&out->bias[n], bias);
  }
  if (call.layout.groups > 1) return;
  const uint8_t *zeros = tail + kColumns * bytes, *sums = zeros + kColumns;
  for (int n = 0; n < kColumns; n += Vector::kLanes) {
    Vector::store_doubles(&out->scale[n], Vector::load_floats(dtype, tail + n * bytes));
    Vector::store_doubles(&out->zero[n],
                          Vector::add(Vector::floats_of_i8(zeros + n), Vector::set(Scheme::kOffset)));
  }
  for (int n = 0; n < kColumns; ++n) {
    int32_t sum;
    std::memcpy(&sum, sums + 4 * n, 4);
    out->sum_of_codes[n] = sum;
  }
}

// Stores outputs, computed in double, rounded to float32 and then to the dtype of y.
// The 64 columns of a row are stored together.
// On an Emerald Rapids core, scattered stores of 64 bytes cost an int8 prefill a sixth of its time.
template <class Vector, QuadScheme Scheme>
void store_rows(const LinearCall& call, const Columns& columns, int64_t block, int64_t first_m, int64_t rows,
                const int32_t (*sums)[kColumns], const float (*totals)[kColumns]) {
  const qcts_problem& p = *call.problem;
  const bool whole_row = call.layout.groups == 1;
  const int64_t first_n = block * kColumns, y_bytes = dtype_bytes(p.y_dtype);
  for (int64_t m = 0; m < rows; ++m) {
    const RowScale row = call.rows[first_m + m];
    const double x_sum = whole_row ? call.x_sums[first_m + m] : 0;
    char* y = static_cast<char*>(p.y) + (first_m + m) * p.ldy_bytes + first_n * y_bytes;
    const auto half = [&](int n) {
      auto value =
          whole_row ? Vector::doubles_of_ints(&sums[m][n]) : Vector::doubles_of_floats(&totals[m][n]);
      if (whole_row) {
        value =
            Vector::fnmadd(Vector::load(&columns.sum_of_codes[n]), Vector::set_double(row.zero_point), value);
        value = Vector::fnmadd(Vector::load(&columns.zero[n]), Vector::set_double(x_sum), value);
        value = Vector::mul(value, Vector::load(&columns.scale[n]));
      }
      return Vector::fmadd(value, Vector::set_double(row.scale), Vector::load(&columns.bias[n]));
    };
    for (int n = 0; n < kColumns && first_n + n < p.n; n += Vector::kLanes) {
      const int64_t some = p.n - first_n - n < Vector::kLanes ? p.n - first_n - n : Vector::kLanes;
      const auto value = Vector::narrow(half(n), half(n + Vector::kLanes / 2));
      Vector::store_some(p.y_dtype, y + n * y_bytes, value, some);
    }
  }
}

template <class Vector, QuadScheme Scheme, QuadMicroKernel MicroKernel>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  const Layout& layout = call.layout;
  alignas(64) int32_t sums[MicroKernel::kRows][kColumns];
  alignas(64) float totals[MicroKernel::kRows][kColumns];
  const int64_t count = layout.groups, ldx = layout.x_stride, padded = layout.padded_group;
  if (count > 1) std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* codes = call.prepared + block * layout.block_bytes;
  const int64_t steps = padded / (4 * Scheme::kQuads), max = MicroKernel::chunk_steps(Scheme::kQuads, rows);
  Epilogue epilogue = {nullptr, layout.scale_dtype, layout.scale_bytes, layout.pairs > 1, nullptr, count,
                       totals};
  const int64_t max_groups = MicroKernel::chunk_groups(padded);
  for (int64_t g = 0; g < count; g += max_groups) {
    const int64_t some = count - g < max_groups ? count - g : max_groups;
    const uint8_t* at = codes + g * layout.group_bytes;
    epilogue.tail = at + layout.code_bytes;
    epilogue.x_pairs = call.x_sums + first_m * count + g;
    for (int64_t step = 0; step < steps; step += max) {
      const bool last = step + max >= steps;
      const PackedPanel packed = {at + step * kStepBytes,
                                  some,
                                  last ? steps - step : max,
                                  last ? layout.group_bytes - step * kStepBytes : max * kStepBytes,
                                  call.x + first_m * ldx + g * padded + step * 4 * Scheme::kQuads,
                                  ldx,
                                  step == 0,
                                  last && count > 1 ? &epilogue : nullptr,
                                  call.prefetches};
      MicroKernel::template multiply<Scheme>(packed, rows, sums);
    }
    // Prefetches in the order of the addresses.
    // If these prefetches come before the codes, they slow 4 bits in groups of 32 by a third.
    const uint8_t* tail = epilogue.tail + (some - 1) * layout.group_bytes;
    const int ahead = MicroKernel::tail_ahead_bytes(call.prefetches, rows);
    for (int64_t line = 0; ahead != 0 && line < layout.group_bytes - layout.code_bytes; line += 64)
      avx2::prefetch(tail + line, ahead);
  }
  Columns columns;
  load_columns<Vector, Scheme>(call, codes + layout.code_bytes, block * kColumns, &columns);
  store_rows<Vector, Scheme>(call, columns, block, first_m, rows, sums, totals);
}

template <class Vector, QuadScheme Scheme, QuadMicroKernel MicroKernel>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const int64_t m_count = call.problem->m;
  if constexpr (requires { MicroKernel::template multiply_row<Scheme>(call, first, last); })
    if (m_count == 1) return MicroKernel::template multiply_row<Scheme>(call, first, last);
  MicroKernel::open(call.layout, m_count);
  for (int64_t block = first; block < last; ++block)
    for (int64_t m = 0; m < m_count; m += MicroKernel::kRows)
      multiply_block<Vector, Scheme, MicroKernel>(
          call, block, m, m_count - m < MicroKernel::kRows ? m_count - m : MicroKernel::kRows);
  MicroKernel::close();
}

// Returns (low, high) as a lane of a multiply-add of 16-bit pairs.
[[maybe_unused]] int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>(static_cast<uint32_t>(high) << 16 | (static_cast<uint32_t>(low) & 0xFFFF));
}

// Writes rows as qx, padded with zeros. Also writes the sums of their groups, which the outputs need.
template <class Vector, QuadScheme Scheme>
void quantize_rows(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  const int64_t count = call.layout.groups, group = call.layout.group, padded = call.layout.padded_group;
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const RowScale chosen = call.rows[m] =
        call.recipe.is_given ? call.recipe.given
                             : avx2::scale_of(call.recipe, Vector::range_of(call.recipe.dtype, row, p.k));
    for (int64_t g = 0; g < count; ++g) {
      int8_t* to = call.x + m * call.layout.x_stride + g * padded;
      const int32_t sum = Vector::quantize_part(call.recipe, row, g * group, group, chosen, to);
      std::memset(to + group, 0, static_cast<size_t>(padded - group));
      call.x_sums[m * count + g] =
          count > 1 ? pair_of(sum, chosen.zero_point) : sum - chosen.zero_point * static_cast<int32_t>(group);
    }
  }
}

// Writes the codes of a group and the sums of each 128 values of k.
// Codes and sums are packed together, so that source and destination stay in L1.
// If there is no second pair, sums[0] covers the whole group.
template <QuadScheme Scheme>
void pack_codes(const qcts_problem& p, int64_t first_n, int64_t columns, int64_t g, uint8_t* codes,
                int32_t (*sums)[kColumns], int64_t parts) {
  constexpr int64_t kStepK = 4 * Scheme::kQuads;
  constexpr uint32_t kFlip = 0x01010101u * Scheme::kOffset, kMask = 2 * kFlip - 0x01010101u;
  const int64_t group = Scheme::group(p);
  const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata")) + first_n * p.k + g * group;
  for (int64_t k0 = 0; k0 < group; k0 += kPairElements)
    for (int64_t c = 0; c < columns; ++c) {
      int32_t& sum = sums[parts > 1 ? k0 / kPairElements : 0][c];
      for (int64_t k = k0; k < group && k < k0 + kPairElements; k += kStepK) {
        uint32_t step = 0;
        for (int quad = 0; quad < Scheme::kQuads; ++quad) {
          const uint32_t four = load_four(qdata + c * p.k, k + 4 * quad, group, kFlip) & kMask;
          const uint32_t two_sums = (four & 0x00FF00FFu) + (four >> 8 & 0x00FF00FFu);
          sum += static_cast<int32_t>((two_sums & 0xFFFFu) + (two_sums >> 16));
          step |= four << 4 * quad;
        }
        std::memcpy(codes + k / kStepK * kStepBytes + 4 * c, &step, 4);
      }
    }
}

// Writes the data that follows the codes of a group, for column c.
template <QuadScheme Scheme>
void pack_tail(const Layout& layout, const char* scale, int8_t zero_point, const int32_t (*sums)[kColumns],
               int64_t c, uint8_t* tail) {
  const int64_t bytes = layout.scale_bytes;
  std::memcpy(tail + c * bytes, scale, static_cast<size_t>(bytes));
  uint8_t* rest = tail + kColumns * bytes;
  if (layout.groups == 1) {
    rest[c] = static_cast<uint8_t>(zero_point);
    std::memcpy(rest + kColumns + 4 * c, &sums[0][c], 4);
    return;
  }
  const int32_t o = Scheme::kOffset + zero_point;
  for (int64_t i = 0; i < layout.pairs; ++i) {
    const int64_t left = layout.group - i * kPairElements;
    const auto count = static_cast<int32_t>(left < kPairElements ? left : kPairElements);
    const int32_t pair = pair_of(i == 0 ? -o : 0, o * count - sums[i][c]);
    std::memcpy(rest + 4 * (i * kColumns + c), &pair, 4);
  }
}

template <QuadScheme Scheme>
void pack_blocks(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  const Layout layout = layout_of<Scheme>(p);
  auto* prepared = static_cast<uint8_t*>(const_cast<void*>(p.prepared));
  const auto* scales = static_cast<const char*>(in_plane(p, "scale"));
  const auto* zero_points = static_cast<const int8_t*>(in_plane(p, "zero_point"));
  for (int64_t block = first; block < last; ++block)
    for (int64_t g = 0; g < layout.groups; ++g) {
      const int64_t n = block * kColumns, columns = p.n - n < kColumns ? p.n - n : kColumns;
      uint8_t* codes = prepared + block * layout.block_bytes + g * layout.group_bytes;
      int32_t sums[kMaxGroup / kPairElements][kColumns] = {};
      pack_codes<Scheme>(p, n, columns, g, codes, sums, layout.pairs);
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (n + c) * layout.groups + g;
        pack_tail<Scheme>(layout, scales + at * layout.scale_bytes, zero_points[at], sums, c,
                          codes + layout.code_bytes);
      }
    }
}

template <QuadScheme Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  const Layout layout = layout_of<Scheme>(*p);
  return static_cast<uint64_t>(layout.blocks * layout.block_bytes + kGivenBytes);
}
template <QuadScheme Scheme, QuadMicroKernel MicroKernel>
uint64_t workspace_bytes(const qcts_problem* p) {
  const Layout layout = layout_of<Scheme>(*p);
  const uint64_t x = static_cast<uint64_t>(MicroKernel::padded_rows(p->m) * layout.x_stride);
  return x + static_cast<uint64_t>(p->m) * (static_cast<uint64_t>(layout.groups) * 4 + sizeof(RowScale));
}

template <const qcts_kernel& kKernel, HasGroups Scheme>
qcts_status supports_linear(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_status status = supports_policy<kKernel>(problem, why, why_size);
  if (status != QCTS_OK) return status;
  const int64_t group = Scheme::group(*problem);
  if (group > kMaxK)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: 32-bit sums hold at most %lld elements",
                  static_cast<long long>(group), static_cast<long long>(kMaxK));
  if (group != problem->k && (group % 8 != 0 || group > kMaxGroup))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: needs a multiple of 8 up to %lld, or the row",
                  static_cast<long long>(group), static_cast<long long>(kMaxGroup));
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, QuadScheme Scheme>
qcts_status prepare_linear(const qcts_problem* problem, void* prepared) {
  qcts_problem copy = as_weight_only(*problem);
  if (check_prepare(kKernel, &copy) != QCTS_OK || !gives_scale(kKernel, *problem)) return QCTS_INVALID;
  const Layout layout = layout_of<Scheme>(copy);
  std::memset(prepared, 0, prepared_bytes<Scheme>(problem));
  keep_given_scale(*problem, static_cast<uint8_t*>(prepared) + layout.blocks * layout.block_bytes);
  copy.prepared = prepared;
  parallel_for(copy.threads, layout.blocks, 1, pack_blocks<Scheme>, &copy);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, class Vector, QuadScheme Scheme, QuadMicroKernel MicroKernel>
qcts_status run_linear(const qcts_problem* problem) {
  const qcts_problem copy = as_weight_only(*problem);
  if (supports_linear<kKernel, Scheme>(problem, nullptr, 0) != QCTS_OK ||
      check_run(kKernel, &copy) != QCTS_OK)
    return QCTS_INVALID;
  if (copy.m == 0) return QCTS_OK;
  auto* x = static_cast<int8_t*>(copy.workspace);
  const Layout layout = layout_of<Scheme>(copy);
  const int64_t stride = layout.x_stride, rows = MicroKernel::padded_rows(copy.m);
  auto* x_sums = reinterpret_cast<int32_t*>(x + rows * stride);
  auto* scales = reinterpret_cast<RowScale*>(x_sums + copy.m * layout.groups);
  const auto* prepared = static_cast<const uint8_t*>(copy.prepared);
  LinearCall call = {&copy, layout, prepared, weight_reading() != WeightReading::followed,
                     x,     x_sums, scales,   Scheme::recipe(*problem)};
  call.recipe.given = kept_scale(prepared + layout.blocks * layout.block_bytes);
  std::memset(x + copy.m * stride, 0, static_cast<size_t>((rows - copy.m) * stride));
  parallel_for(copy.threads, copy.m, 4, quantize_rows<Vector, Scheme>, &call);
  parallel_for(copy.threads, layout.blocks, 1, multiply_blocks<Vector, Scheme, MicroKernel>, &call);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, class Vector, QuadScheme Scheme, QuadMicroKernel MicroKernel>
constexpr qcts_kernel int8_linear_of(const char* scheme, const char* variant, const char* description) {
  return linear_entry(
      scheme, variant, description, QCTS_I32,
      {supports_linear<kKernel, Scheme>, run_linear<kKernel, Vector, Scheme, MicroKernel>,
       workspace_bytes<Scheme, MicroKernel>, prepared_bytes<Scheme>, prepare_linear<kKernel, Scheme>});
}

}  // namespace
}  // namespace qcts::vnni
