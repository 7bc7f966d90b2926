// 8da4w and its wider and narrower siblings: kernels/avx2_int8_linear.h. Codes of at most four bits go eight
// to a word: of column c in word c of 64, k 2i in bits 4i and k 2i + 1 in bits 16 + 4i, so that a left and an
// arithmetic right shift of 16-bit lanes give a pair of k; 7 shifts, 4 multiplications and 4 additions for 64
// weights, and m = 1 is bound by reading half a byte a weight. Wider codes stand as in int8_row_dyn_avx2.cc.
#include "kernels/avx2_int8_linear.h"

namespace {

using namespace qcts::avx2;

struct Intx {
  static int64_t group(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }
  static uint32_t scale_dtype(const qcts_problem& p) {
    return qcts::scheme_name_has(p, "_s32") ? static_cast<uint32_t>(QCTS_F32) : p.w_dtype;
  }
  static RowRecipe recipe(const qcts_problem& p) {
    return {p.x_dtype, true, std::strcmp(p.activation, "dyn_token_asym") == 0, false};
  }
  // -8 .. 7, by the scheme's name.
  static bool is_narrow(const qcts_problem& p) {
    return qcts::scheme_name_has(p, "_b1_") || qcts::scheme_name_has(p, "_b2_") ||
           qcts::scheme_name_has(p, "_b3_") || qcts::scheme_name_has(p, "_b4_");
  }
};

struct IntxNibbles : Intx {
  static constexpr int kStepPairs = 4, kStepBytes = 4 * kColumns;

  [[gnu::always_inline]] static __m256i decode(const uint8_t* at, int vector, int pair) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + vector * 4 * kLanes));
    return _mm256_srai_epi16(pair == 3 ? words : _mm256_slli_epi16(words, 12 - 4 * pair), 12);
  }

  static void prepare_group(const qcts_problem& p, int64_t first_n, int64_t columns, int64_t g,
                            uint8_t* codes) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < group(p); ++k) {
        const uint32_t code = qdata[(first_n + c) * p.k + g * group(p) + k] & 15u;
        const int64_t pair = k % 8 / 2;
        codes[k / 8 * kStepBytes + 4 * c + k % 2 * 2 + pair / 2] |=
            static_cast<uint8_t>(code << (pair % 2 * 4));
      }
  }
};

struct IntxBytes : Intx {
  static constexpr int kStepPairs = 1, kStepBytes = 2 * kColumns;

  [[gnu::always_inline]] static __m256i decode(const uint8_t* at, int vector, int) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + vector * 2 * kLanes)));
  }

  static void prepare_group(const qcts_problem& p, int64_t first_n, int64_t columns, int64_t g,
                            uint8_t* codes) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < group(p); ++k)
        codes[k / 2 * kStepBytes + 2 * c + k % 2] = qdata[(first_n + c) * p.k + g * group(p) + k];
  }
};

constexpr const qcts_kernel& kIntx = qcts_kernel_linear_intx_dyn_avx2;

uint64_t intx_workspace_bytes(const qcts_problem* p) {
  return Intx::is_narrow(*p) ? workspace_bytes<IntxNibbles>(p) : workspace_bytes<IntxBytes>(p);
}
uint64_t intx_prepared_bytes(const qcts_problem* p) {
  return Intx::is_narrow(*p) ? prepared_bytes<IntxNibbles>(p) : prepared_bytes<IntxBytes>(p);
}
qcts_status intx_prepare(const qcts_problem* p, void* prepared) {
  return Intx::is_narrow(*p) ? prepare_linear<kIntx, IntxNibbles>(p, prepared)
                             : prepare_linear<kIntx, IntxBytes>(p, prepared);
}
qcts_status intx_run(const qcts_problem* p) {
  return Intx::is_narrow(*p) ? run_checked<kIntx, IntxNibbles>(p) : run_checked<kIntx, IntxBytes>(p);
}

constexpr qcts_kernel intx_entry() {
  qcts_kernel entry = int8_linear_of<kIntx, IntxBytes>("intx:dyn_token_asym,dyn_token_asym_s32",
                                                       "codes widened to 16 bits in registers for m <= 2, to "
                                                       "a panel above, exact integer sums; bound by reading "
                                                       "weights, then by integer multiply-adds");
  entry.workspace_bytes = intx_workspace_bytes;
  entry.prepared_bytes = intx_prepared_bytes;
  entry.prepare = intx_prepare;
  entry.run = intx_run;
  return entry;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_intx_dyn_avx2 = intx_entry();
