// y = sum over blocks of 64 of scaler * sum(x * table[code]), plus bias. The table is the file's: as sixteen
// floats it fills a vector, whatever its dtype, and codes are looked up in it (kernels/avx512_words.h).
// `prepare` makes the scalers that the file holds in two steps, each rounded to the weight's dtype. A block
// of 64 columns: the table, then for each 64 k the words and 64 scalers in the weight's dtype.
#include "kernels/avx512_words.h"

namespace {

using namespace qcts::avx512;

constexpr int kNf4BlockK = 64;

float nf4_element(uint32_t dtype, const void* array, int64_t index) {
  return _mm_cvtss_f32(_mm512_castps512_ps128(
      load_some(dtype, static_cast<const char*>(array) + index * qcts::dtype_bytes(dtype), 1)));
}
float nf4_rounded(uint32_t dtype, float value) {
  char element[4];
  store_some(dtype, element, _mm512_set1_ps(value), 1);
  return nf4_element(dtype, element, 0);
}

struct Nf4 {
  static constexpr int kStep = kWordStep, kBytesPerK = kWordBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem&) { return kNf4BlockK; }
  static int64_t scale_bytes(const qcts_problem& p) { return kColumns * qcts::dtype_bytes(p.w_dtype); }
  static float factor(const uint8_t*) { return 1; }
  static __m512 decode(const uint8_t* header, const uint8_t* at, int vector, int i) {
    return look_up_words(header, at, vector, i);
  }
  static void scales(const qcts_problem& p, const uint8_t* at, int vector, __m512* scale, __m512*) {
    const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
    *scale = load16(p.w_dtype, at + vector * kLanes * bytes);
  }
  static void block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Nf4>(frame, block, first_m, rows);
  }

  static float scaler(const qcts_problem& p, int64_t block) {
    const auto* scalers = static_cast<const int8_t*>(qcts::in_plane(p, "quantized_scalers"));
    const float factor = nf4_element(p.w_dtype, qcts::in_plane(p, "quantization_factor"), block / 256);
    const float centred = nf4_rounded(p.w_dtype, static_cast<float>(scalers[block]) / factor);
    return centred + nf4_element(p.w_dtype, qcts::in_plane(p, "scaler_mean"), 0);  // rounded as it is stored
  }
  static void prepare_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "quantized_data"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns,
                  bytes = qcts::dtype_bytes(p.w_dtype);
    _mm512_storeu_ps(out, load16(p.w_dtype, qcts::in_plane(p, "nf4")));
    out += kHeaderBytes;
    for (int64_t g = 0; g < p.k / kNf4BlockK; ++g, out += group_bytes<Nf4>(p))
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (first_n + c) * p.k + g * kNf4BlockK;
        for (int64_t k = 0; k < kNf4BlockK; ++k)
          put_nibble(out, c, k, k % 2 == 0 ? pairs[(at + k) / 2] >> 4 : pairs[(at + k) / 2] & 15u);
        store_some(p.w_dtype, out + kNf4BlockK * kBytesPerK + c * bytes,
                   _mm512_set1_ps(scaler(p, at / kNf4BlockK)), 1);
      }
  }
};

qcts_status nf4_supports(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = qcts::check_problem(qcts_kernel_linear_nf4_avx512, p, why, why_size);
  if (status == QCTS_OK && p->k % kNf4BlockK != 0)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size,
                        "k = %lld: blocks of 64 that cross rows are not for linear",
                        static_cast<long long>(p->k));
  return status;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_nf4_avx512 = linear_of<qcts_kernel_linear_nf4_avx512, Nf4>(
    "nf4",
    "64 columns a block, the file's table looked up in registers for m <= 4, to a panel above; bound by "
    "decoding, then by fma",
    nf4_supports);
