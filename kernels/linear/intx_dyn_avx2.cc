// SPDX-License-Identifier: BSD-3-Clause
// 8da4w and its wider and narrower siblings. Codes of at most four bits use kernels/avx2/dots/nibble_dots.h;
// wider ones use kernels/avx2/int8_linear.h, like kernels/avx2/int8_dyn.h.
#include "kernels/avx2/dots/nibble_dots.h"
#include "kernels/avx2/int8_linear.h"

namespace {

using namespace qcts::avx2;
using Nibbles = qcts::vnni::IntxNibbles;

struct Bytes : qcts::vnni::Intx {
  using Codes = qcts::FullRange;
  static constexpr int kStepPairs = 1, kStepBytes = 2 * kColumns;
  static constexpr bool kOneScale = false;

  [[gnu::always_inline]] static __m256i decode(const uint8_t* at, int vector, int) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + vector * 2 * kLanes)));
  }

  static void pack_group(const qcts_problem& p, int64_t first_n, int64_t columns, int64_t g, uint8_t* codes) {
    const auto* qdata = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < group(p); ++k)
        codes[k / 2 * kStepBytes + 2 * c + k % 2] = qdata[(first_n + c) * p.k + g * group(p) + k];
  }
};

constexpr const qcts_kernel& kIntx = qcts_kernel_linear_intx_dyn_avx2;

bool is_narrow(const qcts_problem* p) { return qcts::vnni::has_nibbles(*p); }

qcts_status intx_supports(const qcts_problem* p, char* why, size_t why_size) {
  return is_narrow(p) ? qcts::vnni::supports_linear<kIntx, Nibbles>(p, why, why_size)
                      : supports_linear<kIntx, Bytes>(p, why, why_size);
}
uint64_t intx_workspace_bytes(const qcts_problem* p) {
  return is_narrow(p) ? qcts::vnni::workspace_bytes<Nibbles, NibbleDots>(p) : workspace_bytes<Bytes>(p);
}
uint64_t intx_prepared_bytes(const qcts_problem* p) {
  return is_narrow(p) ? qcts::vnni::prepared_bytes<Nibbles>(p) : prepared_bytes<Bytes>(p);
}
qcts_status intx_prepare(const qcts_problem* p, void* prepared) {
  return is_narrow(p) ? qcts::vnni::prepare_linear<kIntx, Nibbles>(p, prepared)
                      : prepare_linear<kIntx, Bytes>(p, prepared);
}
qcts_status intx_run(const qcts_problem* p) {
  return is_narrow(p) ? qcts::vnni::run_linear<kIntx, NibbleLanes, Nibbles, NibbleDots>(p)
                      : run_checked<kIntx, Bytes>(p);
}

}  // namespace

const qcts_kernel qcts_kernel_linear_intx_dyn_avx2 = qcts::linear_entry(
    qcts::vnni::Intx::kScheme, "avx2",
    "nibbles times bytes in 16 bits, wider codes widened to 16 bits (in a panel for several rows), exact "
    "integer sums; bound by reading weights, then by integer multiply-adds",
    QCTS_I32, {intx_supports, intx_run, intx_workspace_bytes, intx_prepared_bytes, intx_prepare});
