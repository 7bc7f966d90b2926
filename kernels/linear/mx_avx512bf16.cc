// y = sum over blocks of 32 of 2^e * sum(x * element), plus bias, for elements of e2m1 and e4m3
// (kernels/avx512bf16_codes.h). Scales are stored as bfloat16, which holds every e8m0, 2^-127 and NaN
// included; the scale of 32 elements that hold a NaN is NaN. A block of 64 columns: for each 32 k the codes,
// then 64 scales.
#include "kernels/avx512bf16_codes.h"

namespace {

using namespace qcts::avx512bf16;

constexpr int kBlockK = 32;
constexpr uint16_t kNan = 0x7FC0;

struct MxBlocks {
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;
  static int64_t group(const qcts_problem&) { return kBlockK; }
  static int64_t scale_bytes(const qcts_problem&) { return 2 * kColumns; }
  static float factor(const uint8_t*) { return 1; }
  [[gnu::always_inline]] static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale,
                                            __m512*) {
    *scale = qcts::avx512::load16(QCTS_BF16, at + vector * 2 * kLanes);
  }
};

struct Mxfp4 : MxBlocks {
  static constexpr int kStep = kNibbleStep, kBytesPerK = kNibbleBytesPerK;
  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int pair) {
    return look_up_nibbles(kE2m1Table, at, vector, pair);
  }
  // 32 elements of a column; true where one is NaN.
  static bool put(const uint8_t* qdata, int64_t at, uint8_t* group, int64_t column) {
    for (int64_t k = 0; k < kBlockK; ++k) {
      const uint8_t pair = qdata[(at + k) / 2];
      put_nibble(group, column, k, k % 2 == 0 ? pair & 15u : pair >> 4);
    }
    return false;
  }
  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Mxfp4>(frame, block, first_m, rows);
  }
  static void prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out);
};

struct Mxfp8 : MxBlocks {
  static constexpr int kStep = kPairStep, kBytesPerK = kPairBytesPerK;
  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int) {
    return e4m3_pairs(at, vector);
  }
  static bool put(const uint8_t* qdata, int64_t at, uint8_t* group, int64_t column) {
    bool nan = false;
    for (int64_t k = 0; k < kBlockK; ++k) nan |= put_e4m3(group, column, k, qdata[at + k]);
    return nan;
  }
  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Mxfp8>(frame, block, first_m, rows);
  }
  static void prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out);
};

template <class Scheme>
void prepare_columns(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
  const auto* qdata = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
  for (int64_t g = 0; g < p.k / kBlockK; ++g, out += layout.group_bytes)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t at = (first_n + c) * p.k + g * kBlockK;
      const bool nan = Scheme::put(qdata, at, out, c);
      const uint16_t scale = nan ? kNan : qcts::e8m0_as_bf16(scales[at / kBlockK]);
      std::memcpy(out + kBlockK * Scheme::kBytesPerK + 2 * c, &scale, 2);
    }
}
void Mxfp4::prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
  prepare_columns<Mxfp4>(p, layout, first_n, out);
}
void Mxfp8::prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
  prepare_columns<Mxfp8>(p, layout, first_n, out);
}

constexpr const qcts_kernel& kMx = qcts_kernel_linear_mx_avx512bf16;

bool is_mxfp4(const qcts_problem& p) { return qcts::scheme_name_has(p, "mxfp4"); }

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_status status = supports_bf16<kMx>(problem, why, why_size);
  if (status == QCTS_OK && !is_mxfp4(*problem) && !qcts::scheme_name_has(*problem, "_e4m3"))
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "elements of %s: only e2m1 and e4m3",
                        problem->scheme_name);
  return status;
}
uint64_t mx_workspace_bytes(const qcts_problem* p) {
  return is_mxfp4(*p) ? workspace_bytes<Mxfp4>(p) : workspace_bytes<Mxfp8>(p);
}
uint64_t mx_prepared_bytes(const qcts_problem* p) {
  return is_mxfp4(*p) ? prepared_bytes<Mxfp4>(p) : prepared_bytes<Mxfp8>(p);
}
void prepare(const qcts_problem* p, void* prepared) {
  is_mxfp4(*p) ? prepare_weight<Mxfp4>(p, prepared) : prepare_weight<Mxfp8>(p, prepared);
}
void run(const qcts_problem* p) { is_mxfp4(*p) ? run_linear<Mxfp4>(p) : run_linear<Mxfp8>(p); }
qcts_status run_supported(const qcts_problem* p) {
  return supports(p, nullptr, 0) == QCTS_OK ? qcts::run_checked<kMx, run>(p) : QCTS_INVALID;
}

constexpr qcts_kernel mx_kernel() {
  qcts_kernel entry = linear_of<kMx, Mxfp4>("mx",
                                            "64 columns a block, elements made bfloat16 in registers for m "
                                            "<= 6, to a panel above; bound by reading weights, "
                                            "then by the multiplications and the scales of 32 elements");
  entry.supports = supports;
  entry.workspace_bytes = mx_workspace_bytes;
  entry.prepared_bytes = mx_prepared_bytes;
  entry.prepare = qcts::prepare_checked<kMx, prepare>;
  entry.run = run_supported;
  return entry;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_mx_avx512bf16 = mx_kernel();
