// y = sum over groups of scale * sum(x * (q - 8)) + zero * sum(x), plus bias.
// m <= 4 is bound by decoding: eight weights cost two shifts, a conversion and a fused multiply-add, and half
// a byte each leaves memory waiting. So scale and zero are kept out of the inner loop: they act on the two
// sums of a group, and the sums of x are shared by all columns. A 32-bit lane holds eight k of one column, as
// signed nibbles (q - 8), so that a left and an arithmetic right shift sign-extend any of them. Layout of a
// block of 64 columns: for each group, for each 8 k, 64 words (256 bytes), then the group's 64 scales and 64
// zeros in the weight's dtype.
#include "kernels/avx2_linear.h"

namespace {

using namespace qcts::avx2;

struct Scheme {
  static constexpr int kStep = 8, kBytesPerK = kColumns / 2;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = true;

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t scale_bytes(const qcts_problem& p) { return 2 * kColumns * qcts::dtype_bytes(p.w_dtype); }

  static __m256 decode(const uint8_t*, const uint8_t* at, int vector, int step) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + vector * 4 * kLanes));
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(words, 28 - 4 * step), 28));
  }

  static void scales(const qcts_problem& p, const uint8_t* at, int vector, __m256* scale, __m256* zero) {
    const int64_t bytes = qcts::dtype_bytes(p.w_dtype);
    *scale = load8(p.w_dtype, at + vector * kLanes * bytes);
    *zero = load8(p.w_dtype, at + (kColumns + vector * kLanes) * bytes);
  }

  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Scheme>(frame, block, first_m, rows);
  }

  // The words of one group of one column.
  static void prepare_codes(const uint8_t* pairs, int64_t group, int64_t column, uint8_t* out) {
    for (int64_t k = 0; k < group; k += kStep) {
      uint32_t word = 0;
      for (int i = 0; i < kStep; i += 2) {
        const uint32_t pair = pairs[(k + i) / 2];
        word |= (pair >> 4) << 4 * i | (pair & 15) << 4 * (i + 1);
      }
      word ^= 0x88888888u;
      std::memcpy(out + k * kBytesPerK + 4 * column, &word, 4);
    }
  }

  static void prepare_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::plane_data(p.planes, p.n_planes, "qdata"));
    const auto* pairs = static_cast<const char*>(qcts::plane_data(p.planes, p.n_planes, "scale_and_zero"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    const size_t bytes = qcts::dtype_bytes(p.w_dtype);
    for (int64_t g = 0; g < p.k / p.group; ++g) {
      uint8_t* codes = out + g * group_bytes<Scheme>(p);
      uint8_t* scales = codes + p.group * kBytesPerK;
      for (int64_t c = 0; c < columns; ++c) {
        prepare_codes(qdata + ((first_n + c) * p.k + g * p.group) / 2, p.group, c, codes);
        const char* pair = pairs + static_cast<size_t>(2 * (g * p.n + first_n + c)) * bytes;
        std::memcpy(scales + static_cast<size_t>(c) * bytes, pair, bytes);
        std::memcpy(scales + static_cast<size_t>(kColumns + c) * bytes, pair + bytes, bytes);
      }
    }
  }
};

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return qcts::check_problem(qcts_kernel_linear_int4_tinygemm_avx2, problem, why, why_size);
}

qcts_status prepare(const qcts_problem* problem, void* prepared) {
  if (qcts::check_prepare(qcts_kernel_linear_int4_tinygemm_avx2, problem) != QCTS_OK) return QCTS_INVALID;
  prepare_weight<Scheme>(problem, prepared);
  return QCTS_OK;
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_linear_int4_tinygemm_avx2, problem) != QCTS_OK) return QCTS_INVALID;
  run_linear<Scheme>(problem);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx2 = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_LINEAR,
    .scheme = "int4_tinygemm",
    .variant = "avx2",
    .description =
        "64 columns a block, nibbles sign-extended in registers for m <= 4, to a panel above; bound by "
        "decoding, then by fma",
    .claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT,
    .reserved = 0,
    .numerics = {.struct_size = sizeof(qcts_numerics),
                 .x_cast = QCTS_NONE,
                 .scale_cast = QCTS_NONE,
                 .weight_cast = QCTS_NONE,
                 .product_cast = QCTS_NONE,
                 .accumulator = QCTS_F32,
                 .partial_cast = QCTS_NONE,
                 .output_cast = QCTS_NONE,
                 .flags = QCTS_NUM_SCALE_AFTER_SUM,
                 .reserved = 0},
    .supports = supports,
    .workspace_bytes = workspace_bytes<Scheme>,
    .prepared_bytes = prepared_bytes<Scheme>,
    .prepare = prepare,
    .run = run,
};
