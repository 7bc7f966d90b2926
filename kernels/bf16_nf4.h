// NF4 weights for the variants of linear that multiply pairs of bfloat16, and for nothing else: every
// function has internal linkage. y = sum over blocks of 64 of scaler * sum(x * table[code]), plus bias, where
// the file's table is bfloat16, as that of every bfloat16 weight is: then it is looked up as it stands
// (kernels/bf16_codes.h). `prepare` makes the scalers that the file holds in two steps, each rounded to
// bfloat16. A block of 64 columns: the table twice, then for each 64 k the codes and 64 scalers.
#pragma once

#include "kernels/bf16_codes.h"

namespace qcts::bf16 {
namespace {

constexpr int kNf4BlockK = 64;

[[maybe_unused]] float bf16_element(const void* array, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char*>(array) + 2 * index, 2);
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}
[[maybe_unused]] uint16_t rounded_to_bf16(float value) {
  uint16_t bits;
  avx512::store_some(QCTS_BF16, &bits, _mm512_set1_ps(value), 1);
  return bits;
}

struct Nf4 : NarrowScales {
  static constexpr int kStep = kNibbleStep, kBytesPerK = kNibbleBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;

  static int64_t group(const qcts_problem&) { return kNf4BlockK; }
  static float factor(const uint8_t*) { return 1; }
  [[gnu::always_inline]] static __m512i decode(const uint8_t* header, const uint8_t* at, int vector,
                                               int pair) {
    return look_up_nibbles(header, at, vector, pair);
  }
  static void specialize(const uint8_t*, const auto& use) { use(Nf4()); }

  static uint16_t scaler(const qcts_problem& p, int64_t block) {
    const auto* scalers = static_cast<const int8_t*>(in_plane(p, "quantized_scalers"));
    const float factor = bf16_element(in_plane(p, "quantization_factor"), block / 256);
    const uint16_t centred = rounded_to_bf16(static_cast<float>(scalers[block]) / factor);
    return rounded_to_bf16(bf16_element(&centred, 0) + bf16_element(in_plane(p, "scaler_mean"), 0));
  }
  static void prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const auto* pairs = static_cast<const uint8_t*>(in_plane(p, "quantized_data"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    for (int half = 0; half < 2; ++half) std::memcpy(out + 32 * half, in_plane(p, "nf4"), 32);
    out += kHeaderBytes;
    for (int64_t g = 0; g < layout.groups; ++g, out += layout.group_bytes)
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (first_n + c) * p.k + g * kNf4BlockK;
        for (int64_t k = 0; k < kNf4BlockK; ++k)
          put_nibble(out, c, k, k % 2 == 0 ? pairs[(at + k) / 2] >> 4 : pairs[(at + k) / 2] & 15u);
        const uint16_t scale = scaler(p, at / kNf4BlockK);
        std::memcpy(out + kNf4BlockK * kBytesPerK + 2 * c, &scale, 2);
      }
  }
};

template <const qcts_kernel& kKernel, class Engine>
qcts_status supports_nf4(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = supports_pairs<kKernel, Engine>(p, why, why_size);
  if (status != QCTS_OK) return status;
  if (p->w_dtype != QCTS_BF16) return refuse(QCTS_UNSUPPORTED, why, why_size, "a table that is not bfloat16");
  if (p->k % kNf4BlockK != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size,
                  "k = %lld: blocks of 64 that cross rows are not for linear", static_cast<long long>(p->k));
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, class Engine>
constexpr qcts_kernel nf4_linear_of(const char* description) {
  qcts_kernel entry = linear_of<kKernel, Nf4, Engine>("nf4", description);
  entry.supports = supports_nf4<kKernel, Engine>;
  return entry;
}

}  // namespace
}  // namespace qcts::bf16
