// SPDX-License-Identifier: BSD-3-Clause
// The schemes of kernels/vnni/int8_linear.h.
#pragma once

#include "kernels/vnni/int8_linear.h"

namespace qcts::vnni {
namespace {

// W8A8. k is padded to whole tiles for the variant that reads the same bytes as tiles.
struct Int8Row {
  static constexpr int kOffset = 128, kQuads = 1;

  static constexpr const char* kScheme = kInt8RowX;

  static constexpr int64_t pad_k(int64_t) { return 64; }
  static int64_t group(const qcts_problem& p) { return p.k; }
  static uint32_t scale_dtype(const qcts_problem&) { return QCTS_F32; }
  static RowRecipe recipe(const qcts_problem& p) { return avx2::int8_row_recipe(p); }
};

// 8da4w and related schemes. Codes of at most four bits are stored two per byte.
struct Intx {
  static constexpr const char* kScheme = "intx:dyn_token_asym,dyn_token_asym_s32";

  static constexpr int64_t pad_k(int64_t) { return 8; }
  static int64_t group(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }
  static uint32_t scale_dtype(const qcts_problem& p) { return qcts::scale_dtype(p); }
  static RowRecipe recipe(const qcts_problem& p) {
    return {p.x_dtype, true, std::strcmp(p.activation, "dyn_token_asym") == 0, false};
  }
};
struct IntxNibbles : Intx {
  static constexpr int kOffset = 8, kQuads = 2;
};
struct IntxBytes : Intx {
  static constexpr int kOffset = 128, kQuads = 1;
};
// True if codes have at most four bits.
[[maybe_unused]] bool has_nibbles(const qcts_problem& p) { return scheme_params(p).bits <= 4; }

// Selects one of the two layouts of 8da4w, so that one entry serves both.
template <const qcts_kernel& kKernel, class Vector, class MicroKernel, class Nibbles, class Bytes>
struct IntxCalls {
  static uint64_t workspace(const qcts_problem* p) {
    return has_nibbles(*p) ? workspace_bytes<Nibbles, MicroKernel>(p)
                           : workspace_bytes<Bytes, MicroKernel>(p);
  }
  static uint64_t prepared(const qcts_problem* p) {
    return has_nibbles(*p) ? prepared_bytes<Nibbles>(p) : prepared_bytes<Bytes>(p);
  }
  static qcts_status prepare(const qcts_problem* p, void* to) {
    return has_nibbles(*p) ? prepare_linear<kKernel, Nibbles>(p, to) : prepare_linear<kKernel, Bytes>(p, to);
  }
  static qcts_status run(const qcts_problem* p) {
    return has_nibbles(*p) ? run_linear<kKernel, Vector, Nibbles, MicroKernel>(p)
                           : run_linear<kKernel, Vector, Bytes, MicroKernel>(p);
  }
};

template <const qcts_kernel& kKernel, class Vector, class MicroKernel, class Nibbles = IntxNibbles,
          class Bytes = IntxBytes>
constexpr qcts_kernel intx_linear_of(const char* variant, const char* description) {
  using Entry = IntxCalls<kKernel, Vector, MicroKernel, Nibbles, Bytes>;
  return linear_entry(
      Intx::kScheme, variant, description, QCTS_I32,
      {supports_linear<kKernel, Intx>, Entry::run, Entry::workspace, Entry::prepared, Entry::prepare});
}

}  // namespace
}  // namespace qcts::vnni
