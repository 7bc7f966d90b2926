// y = s * sum over blocks of 16 of scale * sum(x * element), plus bias; s is the scale of the whole weight,
// or 1. Elements are looked up (kernels/avx512_words.h). The e4m3 scales are stored as bfloat16, which holds
// them: 16 k are soon over, and widening takes one shift, for 2 bytes more to 8. s acts on the finished sum,
// in one rounding with the bias. A block of 64 columns: s, then for each 16 k the words, then 64 scales.
#include "kernels/avx512_scales.h"
#include "kernels/avx512_words.h"

namespace {

using namespace qcts::avx512;

struct Nvfp4 : NarrowScales {
  static constexpr int kBlockK = 16;
  static constexpr int kStep = kWordStep, kBytesPerK = kWordBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;

  static int64_t group(const qcts_problem&) { return kBlockK; }
  static float factor(const uint8_t* header) {
    float whole;
    std::memcpy(&whole, header, 4);
    return whole;
  }
  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int i) {
    return look_up_words(kE2m1Floats, at, vector, i);
  }
  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Nvfp4>(frame, block, first_m, rows);
  }

  static void prepare_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
    const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
    const void* given = qcts::in_plane(p, "per_tensor_scale");
    const float one = 1;
    std::memcpy(out, given != nullptr ? given : &one, 4);
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    out += kHeaderBytes;
    for (int64_t g = 0; g < p.k / kBlockK; ++g, out += group_bytes<Nvfp4>(p))
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (first_n + c) * p.k + g * kBlockK;
        for (int64_t k = 0; k < kBlockK; ++k)
          put_nibble(out, c, k, k % 2 == 0 ? pairs[(at + k) / 2] & 15u : pairs[(at + k) / 2] >> 4);
        const uint16_t scale = qcts::e4m3_as_bf16(scales[at / kBlockK]);
        std::memcpy(out + kBlockK * kBytesPerK + 2 * c, &scale, 2);
      }
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_nvfp4_avx512 = linear_of<qcts_kernel_linear_nvfp4_avx512, Nvfp4>(
    "nvfp4",
    "64 columns a block, elements looked up in registers for m <= 4, to a panel above; bound by decoding, "
    "then by fma");
