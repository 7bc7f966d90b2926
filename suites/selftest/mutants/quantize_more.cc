// SPDX-License-Identifier: BSD-3-Clause
// quantize of mx, nvfp4, nf4, intx, int4_plain and tinyq, and quantize_activation, scalar: codes.h makes the
// codes, and this file puts them where they belong. With the faults of those operations.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "reference/numerics/float8.h"
#include "suites/selftest/mutants/codes.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/more.h"

namespace qcts::mutants {
namespace {

using scalar::load;
using scalar::round_to;
using scalar::store;
using enum Fault;

template <class Element>
Element* target(const qcts_problem& p, const char* name) {
  return static_cast<Element*>(plane_data(p.out_planes, p.n_out_planes, name));
}

bool is_weight(const qcts_problem& p) { return p.op == QCTS_OP_QUANTIZE; }
int64_t row_count(const qcts_problem& p) { return is_weight(p) ? p.n : p.m; }

std::span<const float> part(const std::vector<float>& all, int64_t first, int64_t count) {
  return std::span(all).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

void put_pair(uint8_t* pairs, int64_t pair, uint8_t even, uint8_t odd) {
  pairs[pair] = static_cast<uint8_t>(even | odd << 4);
}

// The end of the rows, and of the elements of row m, that quantize_activation of int8 rows writes.
int64_t last_row(const qcts_problem& p) {
  if (planted(a8_three_threads_lose_rows) && p.threads == 3) return p.m / 3 * 3;
  return planted(a8_rows_past_32_unwritten) ? std::min<int64_t>(p.m, 32) : p.m;
}

int64_t last_elem(const qcts_problem& p, int64_t m) {
  if (planted(a8_tail_code_zero) && p.k > 32) return p.k / 32 * 32;
  if (planted(a8_codes_past_4096_zero)) return std::min<int64_t>(p.k, 4096);
  if (planted(a8_one_row_loses_tail) && p.m == 1) return p.k - 1;
  if (planted(a8_threads_lose_tail_unclaimed) && p.threads > 1 && m == p.m - 1) return p.k - 1;
  return p.k;
}

IntScale chosen_for(const IntRecipe& recipe, const std::vector<float>& all, const qcts_problem& p,
                    int64_t m) {
  if (planted(a8_scale_of_all)) return choose_int(recipe, all);
  if (planted(a8_scale_of_row_before) && m > 0) --m;
  return scale_of_x(recipe, p, part(all, m * p.k, p.k));
}

void int_rows(const qcts_problem& p, const IntRecipe& recipe) {
  const std::vector<float> all = rows_of_x(p);
  for (int64_t m = 0; m < last_row(p); ++m) {
    const IntScale chosen = chosen_for(recipe, all, p, m);
    const int64_t at = is_given(p) ? 0 : m;
    store(recipe.scale_dtype, target<char>(p, "scale"), at, chosen.scale);
    target<int8_t>(p, "zero_point")[at] = static_cast<int8_t>(chosen.zero);
    if (planted(a8_rows_from_1024_unwritten) && m >= 1024) continue;
    const int64_t whole = last_elem(p, m);
    for (int64_t k = 0; k < p.k; ++k)
      target<int8_t>(p, "qdata")[m * p.k + k] =
          k < whole ? static_cast<int8_t>(int_code(recipe, chosen, all[static_cast<size_t>(m * p.k + k)]))
                    : int8_t{0};
  }
}

void int_activation(const qcts_problem& p) { int_rows(p, int8_recipe(p)); }
void token_activation(const qcts_problem& p) { int_rows(p, token_recipe(p)); }

void intx_weight(const qcts_problem& p) {
  const qcts_scheme_params& params = scheme_params(p);
  IntRecipe recipe = {params.mapping == QCTS_SYMMETRIC_NO_CLIPPING ? Mapping8::no_clipping
                      : params.mapping == QCTS_SYMMETRIC           ? Mapping8::symmetric
                                                                   : Mapping8::asymmetric,
                      params.code_min,
                      params.code_max,
                      p.w_dtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f,
                      p.w_dtype,
                      scale_dtype(p)};
  const uint32_t stored = recipe.scale_dtype;
  if (planted(qix_wide_scale_too_late)) recipe.scale_dtype = p.w_dtype;
  const std::vector<float> all = rows_of_x(p);
  const int64_t group = p.group != 0 ? p.group : p.k;
  for (int64_t g = 0; g < p.n * p.k / group; ++g) {
    const IntScale chosen = choose_int(recipe, part(all, g * group, group));
    store(stored, target<char>(p, "scale"), g, chosen.scale);
    target<int8_t>(p, "zero_point")[g] = static_cast<int8_t>(chosen.zero);
    for (int64_t i = g * group; i < (g + 1) * group; ++i)
      target<int8_t>(p, "qdata")[i] =
          static_cast<int8_t>(int_code(recipe, chosen, all[static_cast<size_t>(i)]));
  }
}

void mx_planes(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  auto *codes = target<uint8_t>(p, "qdata"), *scales = target<uint8_t>(p, "scale");
  const int64_t rows = row_count(p), across = p.k / 32;
  for (int64_t b = 0; b < rows * across; ++b) {
    uint8_t made[32];
    int64_t row = b / across;
    const uint8_t scale = mx_block(p, part(all, b * 32, 32), b % across == across - 1, made);
    if (planted(amx_rows_past_32_wrap)) row %= 32;
    scales[planted(amx_scales_transposed) ? b % across * rows + row : row * across + b % across] = scale;
    for (int i = 0; i < 32; ++i)
      if (!mx_pairs(p))
        codes[b * 32 + i] = made[i];
      else if (i % 2 == 1)
        put_pair(codes, (b * 32 + i) / 2, made[i - 1], made[i]);
  }
}

// Returns the scale of all of x: scaling has two levels unless the policy is "dyn_block16";
// "static_tensor_block16" has the scale in a plane.
float nvfp4_whole_of(const qcts_problem& p, const std::vector<float>& all) {
  const bool given = !is_weight(p) && std::strcmp(p.activation, "static_tensor_block16") == 0;
  if (given && !planted(anv_static_scale_chosen)) {
    const float scale = load(QCTS_F32, plane_data(p.planes, p.n_planes, "act_per_tensor_scale"), 0);
    return scale == 0 && planted(anv_given_zero_is_one) ? 1.0f : scale;
  }
  const float whole =
      nvfp4_whole(planted(anv_whole_of_first_row) ? part(all, 0, p.k) : part(all, 0, row_count(p) * p.k));
  return whole == 0 && planted(anv_whole_of_zeros_one) ? 1.0f : whole;
}

void nvfp4_planes(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  const float whole = nvfp4_whole_of(p, all);
  void* stored = target<void>(p, "per_tensor_scale");
  for (int64_t b = 0; b < row_count(p) * p.k / 16; ++b) {
    uint8_t made[16];
    target<uint8_t>(p, "scale")[b] =
        nvfp4_block(part(all, b * 16, 16), stored == nullptr ? nullptr : &whole, made);
    for (int i = 0; i < 16; i += 2)
      put_pair(target<uint8_t>(p, "qdata"), b * 8 + i / 2, made[i], made[i + 1]);
  }
  if (stored != nullptr) store(QCTS_F32, stored, 0, whole);
}

void fp8_activation(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  for (int64_t m = 0; m < p.m; ++m) {
    uint8_t* codes = target<uint8_t>(p, "qdata") + m * p.k;
    const float scale = fp8_row(p, part(all, m * p.k, p.k), codes);
    store(QCTS_F32, target<char>(p, "scale"), planted(af8_scales_reversed) ? p.m - 1 - m : m, scale);
  }
}

constexpr float kNf4[] = {-1.0f,   -0.6962f, -0.5251f, -0.3949f, -0.2844f, -0.1848f, -0.0911f, 0.0f,
                          0.0796f, 0.1609f,  0.2461f,  0.3379f,  0.4407f,  0.5626f,  0.7230f,  1.0f};

uint8_t nf4_code(uint32_t dtype, float value) {
  if (value != value) return planted(qnf_zero_block_code_7) ? 7 : 0;
  const auto distance = [&](int code) {
    return std::fabs(round_to(dtype, value - round_to(dtype, kNf4[code])));
  };
  uint8_t best = 0;
  for (uint8_t code = 1; code < 16; ++code)
    if (distance(code) < distance(best) || (planted(qnf_ties_go_up) && distance(code) <= distance(best)))
      best = code;
  return best;
}

void nf4_scalers(const qcts_problem& p, const std::vector<float>& scalers) {
  const uint32_t dtype = p.w_dtype;
  double sum = 0;
  for (const float scaler : scalers) sum += scaler;
  const float mean = round_to(dtype, static_cast<float>(sum) / static_cast<float>(scalers.size()));
  store(dtype, target<char>(p, "scaler_mean"), 0, mean);
  for (size_t first = 0; first < scalers.size(); first += 256) {
    float most = 0;
    for (size_t i = first; i < first + 256; ++i) {
      const float centred = std::fabs(round_to(dtype, scalers[i] - mean));
      if (!(centred <= most)) most = centred;
      if (most != most) break;
    }
    const float factor = round_to(dtype, round_to(dtype, 1.0f / round_to(dtype, 2.0f * most)) * 256.0f);
    store(dtype, target<char>(p, "quantization_factor"), static_cast<int64_t>(first / 256), factor);
    for (size_t i = first; i < first + 256; ++i) {
      const float code = std::nearbyint(round_to(dtype, round_to(dtype, scalers[i] - mean) * factor));
      target<int8_t>(p, "quantized_scalers")[i] =
          code != code ? int8_t{0}
                       : static_cast<int8_t>(
                             std::clamp(code, planted(qnf_scaler_clamp_127) ? -127.0f : -128.0f, 127.0f));
    }
  }
}

void nf4_weight(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  for (int i = 0; i < 16; ++i) store(p.w_dtype, target<char>(p, "nf4"), i, round_to(p.w_dtype, kNf4[i]));
  std::vector<float> scalers;
  for (int64_t first = 0; first < p.n * p.k; first += 64) {
    scalers.push_back(largest_magnitude(part(all, first, 64)));
    const auto code = [&](int64_t i) {
      return nf4_code(p.w_dtype, round_to(p.w_dtype, all[static_cast<size_t>(i)] / scalers.back()));
    };
    for (int64_t i = first; i < first + 64; i += 2)
      put_pair(target<uint8_t>(p, "quantized_data"), i / 2, code(i + 1), code(i));
  }
  nf4_scalers(p, scalers);
}

struct Int4Group {
  float scale, zero, least;
};

Int4Group int4_group(const qcts_problem& p, std::span<const float> values, bool symmetric) {
  float low = values[0], high = values[0];
  for (const float value : values) {
    if (value != value) return {value, symmetric ? 0 : value, symmetric ? 0 : value};
    low = std::min(low, value), high = std::max(high, value);
  }
  const float floor = planted(qip_no_least_range) ? 0.0f : 1e-6f;
  if (symmetric) return {std::max(std::max(std::fabs(low), std::fabs(high)), floor) / 8, 0, 0};
  float scale = std::max(high - low, floor) / 15;
  if (planted(qip_scale_rounded_first)) scale = round_to(p.w_dtype, scale);
  return {scale, low + scale * (planted(qip_zero_from_seven) ? 7.0f : 8.0f), low};
}

uint8_t int4_plain_code(const Int4Group& group, float value, bool symmetric) {
  const float steps = std::nearbyint((value - group.least) / group.scale);
  if (steps != steps) return 0;
  if (!symmetric) return static_cast<uint8_t>((static_cast<int>(std::clamp(steps, 0.0f, 15.0f)) - 8) & 15);
  return static_cast<uint8_t>(
      static_cast<int>(std::clamp(steps, planted(qip_symmetric_from_minus_7) ? -7.0f : -8.0f, 7.0f)) & 15);
}

void int4_plain_weight(const qcts_problem& p) {
  const std::vector<float> all = rows_of_x(p);
  const bool symmetric = scheme_params(p).mapping == QCTS_SYMMETRIC;
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t g = 0; g < p.k / p.group; ++g) {
      const int64_t first = n * p.k + g * p.group;
      const Int4Group chosen = int4_group(p, part(all, first, p.group), symmetric);
      for (int64_t i = first; i < first + p.group; i += 2)
        put_pair(target<uint8_t>(p, "qdata"), i / 2,
                 int4_plain_code(chosen, all[static_cast<size_t>(i)], symmetric),
                 int4_plain_code(chosen, all[static_cast<size_t>(i + 1)], symmetric));
      store(p.w_dtype, target<char>(p, "scale"), g * p.n + n, chosen.scale);
      store(p.w_dtype, target<char>(p, "zero_point"), g * p.n + n, chosen.zero);
    }
}

int8_t tinyq_code(float rounded, bool clamped) {
  if (rounded != rounded) return 0;
  if (clamped || planted(qtq_w8a16_clamps)) return static_cast<int8_t>(std::clamp(rounded, -128.0f, 127.0f));
  const bool fits = rounded >= -0x1p31f && rounded < 0x1p31f;
  return fits ? static_cast<int8_t>(static_cast<uint32_t>(static_cast<int32_t>(rounded))) : int8_t{0};
}

void tinyq_weight(const qcts_problem& p) {
  const bool wide = (scheme_params(p).flags & QCTS_SCHEME_CODES_WRAP) == 0;
  const std::vector<float> all = rows_of_x(p);
  for (int64_t n = 0; n < p.n; ++n) {
    const float most = largest_magnitude(part(all, n * p.k, p.k));
    float scale = round_to(p.w_dtype, most / 127.0f);
    if (wide && !planted(qtq_scale_in_float32)) scale = static_cast<float>(static_cast<double>(most) / 127);
    store(p.w_dtype, target<char>(p, "scales"), n, scale);
    if (wide && !planted(qtq_zero_points_unwritten))
      std::memset(target<char>(p, "zero_points") + 4 * n, 0, 4);
    for (int64_t i = n * p.k; i < (n + 1) * p.k; ++i)
      target<int8_t>(p, "int8_weights")[i] =
          tinyq_code(std::nearbyint(round_to(p.w_dtype, all[static_cast<size_t>(i)] / scale)), wide);
  }
}

// Quantizing x has no weight to check.
template <const qcts_kernel& kKernel>
qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  return kKernel.op == QCTS_OP_QUANTIZE ? check_problem(kKernel, problem, why, why_size)
                                        : check_activation(kKernel, problem, why, why_size);
}

qcts_status without_rows(const qcts_problem& p) {
  if (planted(a8_divides_by_rows) && p.k / p.m > 0) return QCTS_FAILED;
  auto* codes = target<uint8_t>(p, "qdata");
  if (planted(a8_writes_without_rows) && codes != nullptr) codes[0] ^= 1;
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, void (*kPlanes)(const qcts_problem&)>
qcts_status run(const qcts_problem* problem) {
  if (kKernel.op == QCTS_OP_QUANTIZE && check_run(kKernel, problem) != QCTS_OK) return QCTS_INVALID;
  if (problem->n_out_planes == 0) return QCTS_INVALID;
  if (has_no_rows(kKernel.op, *problem)) return without_rows(*problem);
  if (problem->x == nullptr) return QCTS_INVALID;
  kPlanes(*problem);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, void (*kPlanes)(const qcts_problem&)>
constexpr qcts_kernel make(qcts_op op, const char* scheme) {
  return exact_kernel(op, scheme, supports<kKernel>, run<kKernel, kPlanes>);
}

}  // namespace

#define QCTS_QUANTIZES(op, name, scheme, planes) const qcts_kernel name = make<name, planes>(op, scheme);
QCTS_QUANTIZES(QCTS_OP_QUANTIZE, quantize_mx, "mx", mx_planes)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE, quantize_nvfp4, "nvfp4", nvfp4_planes)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE, quantize_nf4, "nf4", nf4_weight)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE, quantize_intx, "intx", intx_weight)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE, quantize_int4_plain, "int4_plain", int4_plain_weight)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE, quantize_tinyq, "tinyq", tinyq_weight)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE_ACTIVATION, activation_int8_row, kInt8X, int_activation)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE_ACTIVATION, activation_intx, "intx:dyn_token_asym", token_activation)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE_ACTIVATION, activation_fp8_row, "fp8_row:dyn_row", fp8_activation)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE_ACTIVATION, activation_mx, "mx:dyn_block32", mx_planes)
QCTS_QUANTIZES(QCTS_OP_QUANTIZE_ACTIVATION, activation_nvfp4,
               "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", nvfp4_planes)
#undef QCTS_QUANTIZES

}  // namespace qcts::mutants
