// SPDX-License-Identifier: BSD-3-Clause
// fp8_sparse24: a weight that stores two of every four codes. With the faults qsp_* of quantize, dsp_* of
// dequantize and lsp_* of linear.
#include <algorithm>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "reference/numerics/float8.h"
#include "suites/selftest/mutants/codes.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/more.h"

namespace qcts::mutants {
namespace {

using enum Fault;

// Two values and the nibble of their positions, which is negative if more than two are nonzero.
struct Chunk {
  uint8_t values[2] = {0, 0};
  int nibble = 0;
};

bool is_stored(uint8_t code) { return (code & (planted(qsp_minus_zero_is_a_value) ? 0xFF : 0x7F)) != 0; }

Chunk one_value(uint8_t value, int place) {
  if (place == 3 && !planted(qsp_one_at_3_comes_first)) return {{0, value}, 3 << 2};
  if (planted(qsp_zero_at_next_place) && place < 3) return {{value, 0}, place | (place + 1) << 2};
  return {{value, 0}, place == 3 ? 3 : place | 3 << 2};
}

Chunk compressed(const uint8_t* four) {
  int places[4], count = 0;
  for (int i = 0; i < 4; ++i)
    if (is_stored(four[i])) places[count++] = i;
  if (count == 0) return {{0, 0}, planted(qsp_empty_at_0_and_1) ? 1 << 2 : 0};
  if (count == 1) return one_value(four[places[0]], places[0]);
  if (count > 2 && !planted(qsp_third_value_dropped)) return {{0, 0}, -1};
  return {{four[places[0]], four[places[1]]}, places[0] | places[1] << 2};
}

qcts_status quantize_rows(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  auto *values = static_cast<uint8_t*>(plane_data(p.out_planes, p.n_out_planes, "qdata")),
       *metadata = static_cast<uint8_t*>(plane_data(p.out_planes, p.n_out_planes, "sparse_metadata"));
  std::fill(metadata, metadata + p.n * p.k / 8, uint8_t{0});
  for (int64_t n = 0; n < p.n; ++n) {
    const std::span<const float> row =
        std::span(all).subspan(static_cast<size_t>(n * p.k), static_cast<size_t>(p.k));
    const float scale = scalar::round_to(p.w_dtype, largest_magnitude(row) / 448.0f);
    scalar::store(QCTS_F32, static_cast<char*>(plane_data(p.out_planes, p.n_out_planes, "scale")), n, scale);
    for (int64_t k = 0; k < p.k; k += 4) {
      uint8_t four[4];
      for (int64_t i = 0; i < 4; ++i)
        four[i] = float8_code(DType::float8_e4m3fn, row[static_cast<size_t>(k + i)], scale);
      const Chunk chunk = compressed(four);
      if (chunk.nibble < 0) return QCTS_FAILED;
      const int64_t at = (n * p.k + k) / 4;
      std::copy(chunk.values, chunk.values + 2, values + 2 * at);
      const bool high = (at % 2 == 1) != planted(qsp_nibbles_swapped);
      metadata[at / 2] = static_cast<uint8_t>(metadata[at / 2] | chunk.nibble << (high ? 4 : 0));
    }
  }
  return QCTS_OK;
}

qcts_status run(const qcts_problem* problem) {
  if (check_run(quantize_fp8_sparse24, problem) != QCTS_OK) return QCTS_INVALID;
  return quantize_rows(*problem);
}

}  // namespace

Term fp8_sparse24_term(const qcts_problem& p, int64_t n, int64_t k) {
  const auto* metadata = static_cast<const uint8_t*>(plane_data(p.planes, p.n_planes, "sparse_metadata"));
  const auto* values = static_cast<const uint8_t*>(plane_data(p.planes, p.n_planes, "qdata"));
  const int64_t chunk = (n * p.k + k) / 4;
  const bool high = (chunk % 2 == 1) != planted(dsp_nibbles_swapped);
  const int nibble = metadata[chunk / 2] >> (high ? 4 : 0) & 15;
  int first = nibble & 3, second = nibble >> 2;
  if (planted(dsp_places_swapped)) std::swap(first, second);
  if (planted(lsp_second_follows_first)) second = std::min(first + 1, 3);
  if (planted(lsp_places_of_chunk_before) && k % 64 >= 60) {
    const int before = metadata[(chunk - 1) / 2] >> ((chunk - 1) % 2 == 1 ? 4 : 0) & 15;
    first = before & 3, second = before >> 2;
  }
  const float scale = scalar::load(QCTS_F32, plane_data(p.planes, p.n_planes, "scale"), n);
  const auto place = static_cast<int>(k % 4);
  uint8_t code = 0;
  if (place == first) code = values[2 * chunk];
  if (place == second && nibble != 0) code = values[2 * chunk + 1];
  const bool tail = k >= p.k / 32 * 32;
  if ((planted(dsp_tail_is_zero) || planted(lsp_tail_dropped)) && tail) code = 0;
  return {scalar::e4m3fn_to_f32(code), scale, 0};
}

const qcts_kernel quantize_fp8_sparse24 =
    exact_kernel(QCTS_OP_QUANTIZE, "fp8_sparse24", supports_problem<quantize_fp8_sparse24>, run);

}  // namespace qcts::mutants
