// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/expected_planes.h"

#include <cstring>

#include "kernels/abi/problem.h"

namespace qcts {
namespace {

bool is(const char* text, const char* other) { return text != nullptr && std::strcmp(text, other) == 0; }

// Compares the family of a kernel's scheme, after which activation policies may follow a colon.
bool is_family(const char* scheme, const char* family) {
  const size_t length = std::strlen(family);
  return scheme != nullptr && std::strncmp(scheme, family, length) == 0 &&
         (scheme[length] == '\0' || scheme[length] == ':');
}

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t group_of(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }

uint32_t rows_of_int8(ExpectedPlane* expected, uint32_t scale_dtype, int64_t n, int64_t k, int64_t down,
                      int64_t across) {
  expected[0] = {"qdata", QCTS_I8, 2, {n, k}};
  expected[1] = {"scale", scale_dtype, 2, {down, across}};
  expected[2] = {"zero_point", QCTS_I8, 2, {down, across}};
  return 3;
}

// torchao 0.18 Int4TilePackedTo4dTensor pads k to 1024 and n to 8.
uint32_t int4_tinygemm(const qcts_problem& p, const char* layout, ExpectedPlane* expected) {
  if (is_tile_packed(layout)) {
    const int64_t k = round_up(p.k, 1024), n = round_up(p.n, 8);
    expected[0] = {"qdata", QCTS_I32, 4, {n / 8, k / 128, 32, 4}};
    expected[1] = {"scale_and_zero", p.w_dtype, 3, {k / p.group, n, 2}};
    return 2;
  }
  expected[0] = {"qdata", QCTS_U8, 2, {p.n, p.k / 2}};
  expected[1] = {"scale_and_zero", p.w_dtype, 3, {p.k / p.group, p.n, 2}};
  return 2;
}

// Float8Tensor: one scale for all, for 128 x 128, for a row, or for a group of a row.
uint32_t fp8(const qcts_problem& p, ExpectedPlane* expected) {
  const qcts_scheme_params& params = scheme_params(p);
  const int64_t down = params.group_rows != 0 ? p.n / params.group_rows : 1;
  expected[0] = {"qdata", params.element_dtype, 2, {p.n, p.k}};
  expected[1] = {"scale", QCTS_F32, 2, {down, p.k / group_of(p)}};
  return 2;
}

// Scales of blocks: row-major, or in tiles of 128 x 4 whose bytes are ordered as 32 x 16.
ExpectedPlane block_scales(const char* layout, uint32_t dtype, int64_t rows, int64_t blocks) {
  if (is(layout, "swizzled")) return {"scale", dtype, 2, {round_up(rows, 128) / 4, round_up(blocks, 4) * 4}};
  return {"scale", dtype, 2, {rows, blocks}};
}

// MXTensor: float8 elements have their own dtype, others are bytes, with two 4-bit elements to a byte.
uint32_t mx(const qcts_problem& p, const char* layout, ExpectedPlane* expected) {
  const uint32_t element = scheme_params(p).element_dtype;
  const bool wide = element == QCTS_F8_E4M3FN || element == QCTS_F8_E5M2, pairs = element == QCTS_F4_E2M1_X2;
  expected[0] = {"qdata", wide ? element : static_cast<uint32_t>(QCTS_U8), 2, {p.n, pairs ? p.k / 2 : p.k}};
  expected[1] = block_scales(layout, QCTS_F8_E8M0, p.n, p.k / 32);
  return 2;
}

uint32_t nvfp4(const qcts_problem& p, const char* layout, ExpectedPlane* expected) {
  expected[0] = {"qdata", QCTS_U8, 2, {p.n, p.k / 2}};
  expected[1] = block_scales(layout, QCTS_F8_E4M3FN, p.n, p.k / 16);
  expected[2] = {"per_tensor_scale", QCTS_F32, 0, {}};
  return scheme_params(p).levels == 2 ? 3 : 2;
}

uint32_t nf4(const qcts_problem& p, ExpectedPlane* expected) {
  const int64_t elems = p.n * p.k;
  expected[0] = {"quantized_data", QCTS_U8, 1, {elems / 2}};
  expected[1] = {"scaler_mean", p.w_dtype, 0, {}};
  expected[2] = {"quantization_factor", p.w_dtype, 1, {elems / 64 / 256}};
  expected[3] = {"quantized_scalers", QCTS_I8, 1, {elems / 64}};
  expected[4] = {"nf4", p.w_dtype, 1, {16}};
  return 5;
}

// GGUFQuantizedTensor: a row with one super block has no dimension for super blocks.
uint32_t gguf_proto(const qcts_problem& p, ExpectedPlane* expected) {
  const int64_t supers = p.k / 256;
  const uint32_t ndim = supers == 1 ? 1 : 2;
  expected[0] = {"super_block_scale_scale", p.w_dtype, ndim, {p.n, supers}};
  expected[1] = {"super_block_min_scale", p.w_dtype, ndim, {p.n, supers}};
  expected[2] = {"quantized_block_scale", p.w_dtype, ndim + 1, {p.n, supers == 1 ? 8 : supers, 8}};
  expected[3] = {"quantized_block_min", p.w_dtype, ndim + 1, {p.n, supers == 1 ? 8 : supers, 8}};
  expected[4] = {"int_data", p.w_dtype, 2, {p.n, p.k}};
  return 5;
}

uint32_t int4_rows_of_groups(const qcts_problem& p, ExpectedPlane* expected, bool words) {
  expected[0] = {"qdata", words ? QCTS_I32 : QCTS_I8, 2, {p.n, words ? p.k / 8 : p.k / 2}};
  expected[1] = {"scale", p.w_dtype, 2, {p.k / p.group, p.n}};
  expected[2] = {"zero_point", words ? static_cast<uint32_t>(QCTS_I8) : p.w_dtype, 2, {p.k / p.group, p.n}};
  return 3;
}

// Int4PreshuffledTensor for float8 x, unpacked.
uint32_t int4_e4m3(const qcts_problem& p, ExpectedPlane* expected) {
  expected[0] = {"qdata", QCTS_I8, 2, {p.n, p.k / 2}};
  expected[1] = {"scale", QCTS_F8_E4M3FN, 2, {p.k / p.group, p.n}};
  expected[2] = {"row_scale", QCTS_F32, 1, {p.n}};
  return 3;
}

uint32_t float8_rows(const qcts_problem& p, ExpectedPlane* expected) {
  expected[0] = {"qdata", QCTS_F8_E4M3FN, 2, {p.n, p.k}};
  expected[1] = {"scale", QCTS_F32, 2, {p.n, 1}};
  return 2;
}

uint32_t fp8_sparse24(const qcts_problem& p, ExpectedPlane* expected) {
  expected[0] = {"qdata", QCTS_F8_E4M3FN, 2, {p.n, p.k / 2}};
  expected[1] = {"sparse_metadata", QCTS_U8, 2, {p.n, p.k / 8}};
  expected[2] = {"scale", QCTS_F32, 2, {p.n, 1}};
  return 3;
}

uint32_t float_weight(const qcts_problem& p, ExpectedPlane* expected) {
  expected[0] = {"original_weight", p.w_dtype, 2, {p.n, p.k}};
  return 1;
}

// TinyQ 006b7b9: W8A32LinearLayer, W8A16LinearLayer.
uint32_t tinyq(const qcts_problem& p, ExpectedPlane* expected) {
  expected[0] = {"int8_weights", QCTS_I8, 2, {p.n, p.k}};
  expected[1] = {"scales", p.w_dtype, 1, {p.n}};
  expected[2] = {"zero_points", QCTS_I32, 1, {p.n}};
  return scheme_params(p).zero_point != QCTS_ZERO_NONE ? 3 : 2;
}

struct BlockRule {
  const char* family;
  int64_t elems;     // the family's own block; 0: the problem's group, along k
  bool of_all;       // blocks run on from row to row, so n * k is a multiple of one
  int64_t multiple;  // the group is a multiple of this
};
constexpr BlockRule kBlocks[] = {
    {"int4_tinygemm", 0, false, 8}, {"int4_plain", 0, false, 8},    {"int4_int32", 0, false, 8},
    {"int8_group", 0, false, 1},    {"nf4", 64 * 256, true, 1},     {"mx", 32, false, 1},
    {"nvfp4", 16, false, 1},        {"gguf_proto", 256, false, 1},  {"fp8_sparse24", 8, false, 1},
    {"int4_e4m3", 0, false, 8},     {"int8_group_v1", 0, false, 1},
};

}  // namespace

// Shapes follow torchao 0.18: the tensor classes that reference/schemes names.
uint32_t expected_planes(const qcts_problem& p, const char* scheme, const char* layout,
                         ExpectedPlane* expected) {
  if (is_family(scheme, "int4_tinygemm")) return int4_tinygemm(p, layout, expected);
  if (is_family(scheme, "int8_row") || is_family(scheme, "int8_row_reduced") ||
      is_family(scheme, "int8_row_v1"))
    return rows_of_int8(expected, QCTS_F32, p.n, p.k, p.n, 1);
  if (is_family(scheme, "int8_tensor") || is_family(scheme, "int8_tensor_reduced"))
    return rows_of_int8(expected, QCTS_F32, p.n, p.k, 1, 1);
  if (is_family(scheme, "int8_group") || is_family(scheme, "int8_group_v1"))
    return rows_of_int8(expected, QCTS_F32, p.n, p.k, p.n, p.k / group_of(p));
  if (is_family(scheme, "intx"))
    return rows_of_int8(expected, scale_dtype(p), p.n, p.k, p.n, p.k / group_of(p));
  if (is_family(scheme, "int4_plain")) return int4_rows_of_groups(p, expected, false);
  if (is_family(scheme, "int4_int32")) return int4_rows_of_groups(p, expected, true);
  if (is_family(scheme, "int4_e4m3")) return int4_e4m3(p, expected);
  if (is_family(scheme, "fp8_row")) return float8_rows(p, expected);
  if (is_family(scheme, "fp8")) return fp8(p, expected);
  if (is_family(scheme, "fp8_sparse24")) return fp8_sparse24(p, expected);
  if (is_family(scheme, "mx")) return mx(p, layout, expected);
  if (is_family(scheme, "nvfp4")) return nvfp4(p, layout, expected);
  if (is_family(scheme, "nf4")) return nf4(p, expected);
  if (is_family(scheme, "gguf_proto")) return gguf_proto(p, expected);
  if (is_family(scheme, "tinyq")) return tinyq(p, expected);
  if (is_family(scheme, "float_weight")) return float_weight(p, expected);
  return 0;
}

// Follows policy_specs in reference/schemes: int8.cc, fp8.cc, nvfp4.cc.
uint32_t expected_given_scale(const qcts_problem& p, const char* scheme, ExpectedPlane* expected) {
  if (is(p.activation, "dyn_row_fbgemm")) {
    expected[0] = {"activation_scale_ub", QCTS_F32, 1, {1}};
    return 1;
  }
  if (p.activation == nullptr || std::strncmp(p.activation, "static_", 7) != 0) return 0;
  if (is_family(scheme, "nvfp4")) {
    expected[0] = {"act_per_tensor_scale", QCTS_F32, 0, {}};
    return 1;
  }
  expected[0] = {"act_quant_scale", QCTS_F32, 2, {1, 1}};
  expected[1] = {"act_quant_zero_point", QCTS_I8, 2, {1, 1}};
  const bool int8 = scheme != nullptr && std::strncmp(scheme, "int8_", 5) == 0;
  return int8 && !is(p.activation, "static_tensor_sym") ? 2 : 1;
}

qcts_status check_blocks(const qcts_problem& p, const char* scheme, char* why, size_t why_size) {
  for (const BlockRule& rule : kBlocks) {
    if (!is_family(scheme, rule.family)) continue;
    const int64_t block = rule.elems != 0 ? rule.elems : p.group, length = rule.of_all ? p.n * p.k : p.k;
    if (block <= 0 || block % rule.multiple != 0 || length % block != 0)
      return refuse(QCTS_UNSUPPORTED, why, why_size,
                    "group %lld: needs a multiple of %lld that divides %s = %lld",
                    static_cast<long long>(block), static_cast<long long>(rule.multiple),
                    rule.of_all ? "n * k" : "k", static_cast<long long>(length));
    return QCTS_OK;
  }
  const int64_t rows = scheme_params(p).group_rows;
  const bool groups = is_family(scheme, "intx") || is_family(scheme, "fp8");
  if (p.group < 0 || (groups && p.group > 0 && p.k % p.group != 0) || (rows > 1 && p.n % rows != 0))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld does not divide n = %lld, k = %lld",
                  static_cast<long long>(p.group), static_cast<long long>(p.n), static_cast<long long>(p.k));
  if (!groups && p.group != 0 && p.group != p.k)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "needs one scale per row, not groups of %lld",
                  static_cast<long long>(p.group));
  return QCTS_OK;
}

}  // namespace qcts
