// The schemes of kernels/vnni_int8_linear.h; every function has internal linkage.
#pragma once

#include "kernels/vnni_int8_linear.h"

namespace qcts::vnni {
namespace {

// W8A8. k is padded to whole tiles, for the variant that reads the same bytes as tiles.
struct Int8Row {
  static constexpr int kOffset = 128, kQuads = 1, kPadK = 64;

  static constexpr const char* kScheme = "int8_row:dyn_row_sym,dyn_row_asym,dyn_row_sym_127";

  static int64_t group(const qcts_problem& p) { return p.k; }
  static uint32_t scale_dtype(const qcts_problem&) { return QCTS_F32; }
  static RowRecipe recipe(const qcts_problem& p) { return avx2::int8_row_recipe(p.x_dtype, p.activation); }
};

// 8da4w and its siblings. Codes of at most four bits go two to a byte.
struct Intx {
  static constexpr const char* kScheme = "intx:dyn_token_asym,dyn_token_asym_s32";

  static int64_t group(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }
  static uint32_t scale_dtype(const qcts_problem& p) {
    return scheme_name_has(p, "_s32") ? static_cast<uint32_t>(QCTS_F32) : p.w_dtype;
  }
  static RowRecipe recipe(const qcts_problem& p) {
    return {p.x_dtype, true, std::strcmp(p.activation, "dyn_token_asym") == 0, false};
  }
};
struct IntxNibbles : Intx {
  static constexpr int kOffset = 8, kQuads = 2, kPadK = 8;
};
struct IntxBytes : Intx {
  static constexpr int kOffset = 128, kQuads = 1, kPadK = 8;
};
// -8 .. 7, by the scheme's name.
[[maybe_unused]] bool has_nibbles(const qcts_problem& p) {
  return scheme_name_has(p, "_b1_") || scheme_name_has(p, "_b2_") || scheme_name_has(p, "_b3_") ||
         scheme_name_has(p, "_b4_");
}

}  // namespace
}  // namespace qcts::vnni
