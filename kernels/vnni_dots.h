// The engine of kernels/vnni_int8_linear.h for VPDPBUSD; every function has internal
// linkage. Sums of up to 6 rows and several vectors of columns stay in registers; each weight is loaded once
// for all rows, each x broadcast once for all columns. Up to 6 rows decode nibbles as they read them; more of
// them share a panel of bytes, 256 k (16 KiB) at a time. Codes that are bytes already are their own panel:
// they come from memory for the first 6 rows, from L1 for the others.
#pragma once

#include "kernels/vnni_schemes.h"

namespace qcts::vnni {
namespace {

// Unsigned codes of quad `i` of a step, for the columns of a vector.
template <class Vector, int kQuads>
[[gnu::always_inline]] inline typename Vector::Ints unsigned_codes(const uint8_t* at, int vector, int i) {
  const auto bytes = Vector::load(at + vector * 4 * Vector::kLanes);
  if (kQuads == 1) return bytes;
  return Vector::low_nibbles(i == 0 ? bytes : Vector::shift_right_4(bytes));
}

// sums[m][...] += products of M rows with all columns. kStream: the codes come from memory.
template <class Vector, int kQuads, int M, bool kStream>
[[gnu::noinline]] void multiply_rows(const Piece& piece, Sums sums) {
  constexpr int V = Vector::vectors_of(M);
  for (int first = 0; first < kColumns / Vector::kLanes; first += V) {
    typename Vector::Ints sum[M][V];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        sum[m][v] = piece.first ? Vector::zero() : Vector::load(&sums[m][(first + v) * Vector::kLanes]);
    for (int64_t step = 0; step < piece.steps; ++step) {
      const uint8_t* at = piece.codes + step * kStepBytes;
      if (kStream && first == 0)
#pragma GCC unroll 4
        for (int line = 0; line < kStepBytes; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(at + line + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 2
      for (int i = 0; i < kQuads; ++i) {
        typename Vector::Ints codes[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) codes[v] = unsigned_codes<Vector, kQuads>(at, first + v, i);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const auto x = Vector::broadcast(piece.x + m * piece.ldx + 4 * (step * kQuads + i));
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) sum[m][v] = Vector::dot(sum[m][v], codes[v], x);
        }
      }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) Vector::store(&sums[m][(first + v) * Vector::kLanes], sum[m][v]);
  }
}

template <class Vector, int kQuads, bool kStream>
int64_t multiply_some(const Piece& piece, int64_t rows, Sums sums) {
  if (rows >= 6) return multiply_rows<Vector, kQuads, 6, kStream>(piece, sums), 6;
  if (rows >= 4) return multiply_rows<Vector, kQuads, 4, kStream>(piece, sums), 4;
  if (rows >= 2) return multiply_rows<Vector, kQuads, 2, kStream>(piece, sums), 2;
  return multiply_rows<Vector, kQuads, 1, kStream>(piece, sums), 1;
}

template <class Vector, int kQuads>
void multiply_all(const Piece& piece, int64_t rows, Sums sums, bool stream) {
  int64_t m = stream ? multiply_some<Vector, kQuads, true>(piece, rows, sums) : 0;
  while (m < rows) {
    Piece rest = piece;
    rest.x += m * piece.ldx;
    m += multiply_some<Vector, kQuads, false>(rest, rows - m, sums + m);
  }
}

template <class Vector>
struct Dots {
  static constexpr int kRows = 64, kChunkQuads = 64;

  static int64_t padded_rows(int64_t m) { return m; }
  static void open(int64_t) {}
  static void close() {}

  template <class Scheme>
  static void multiply(const Piece& piece, int64_t rows, Sums sums) {
    if (Scheme::kQuads == 1 || rows <= 6)
      return multiply_all<Vector, Scheme::kQuads>(piece, rows, sums, true);
    alignas(64) uint8_t panel[kChunkQuads * kStepBytes];
    for (int64_t step = 0; step < piece.steps; ++step) {
      const uint8_t* at = piece.codes + step * kStepBytes;
      for (int v = 0; v < kColumns / Vector::kLanes; ++v) {
        _mm_prefetch(reinterpret_cast<const char*>(at + v * 4 * Vector::kLanes + kPrefetchBytes),
                     _MM_HINT_T0);
        for (int i = 0; i < 2; ++i)
          Vector::store(panel + (2 * step + i) * kStepBytes + v * 4 * Vector::kLanes,
                        unsigned_codes<Vector, 2>(at, v, i));
      }
    }
    multiply_all<Vector, 1>({panel, 2 * piece.steps, piece.x, piece.ldx, piece.first}, rows, sums, false);
  }
};

// The two layouts of 8da4w behind one entry.
template <const qcts_kernel& kKernel, class Vector>
struct IntxCalls {
  using Engine = Dots<Vector>;
  static uint64_t workspace(const qcts_problem* p) {
    return has_nibbles(*p) ? workspace_bytes<IntxNibbles, Engine>(p) : workspace_bytes<IntxBytes, Engine>(p);
  }
  static uint64_t prepared(const qcts_problem* p) {
    return has_nibbles(*p) ? prepared_bytes<IntxNibbles>(p) : prepared_bytes<IntxBytes>(p);
  }
  static qcts_status prepare(const qcts_problem* p, void* to) {
    return has_nibbles(*p) ? prepare_linear<kKernel, IntxNibbles>(p, to)
                           : prepare_linear<kKernel, IntxBytes>(p, to);
  }
  static qcts_status run(const qcts_problem* p) {
    return has_nibbles(*p) ? run_linear<kKernel, Vector, IntxNibbles, Engine>(p)
                           : run_linear<kKernel, Vector, IntxBytes, Engine>(p);
  }
};

template <const qcts_kernel& kKernel, class Vector>
constexpr qcts_kernel intx_linear_of(const char* variant, const char* description) {
  using Entry = IntxCalls<kKernel, Vector>;
  return linear_entry(
      "intx:dyn_token_asym", variant, description, QCTS_I32,
      {supports_linear<kKernel, Intx>, Entry::run, Entry::workspace, Entry::prepared, Entry::prepare});
}

}  // namespace
}  // namespace qcts::vnni
