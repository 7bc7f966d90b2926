// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/checks.h"

#include "kernels/abi/problem.h"
#include "kernels/families/expected_planes.h"
#include "kernels/machine/machine.h"

namespace qcts {
namespace {

bool is_float(uint32_t dtype) { return dtype == QCTS_F32 || dtype == QCTS_F16 || dtype == QCTS_BF16; }

qcts_status check_plane(const ExpectedPlane& expected, const qcts_plane* planes, uint32_t count, char* why,
                        size_t why_size) {
  const qcts_plane* plane = find_plane(planes, count, expected.name);
  if (plane == nullptr) return refuse(QCTS_UNSUPPORTED, why, why_size, "plane %s is missing", expected.name);
  if (plane->dtype != expected.dtype)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "plane %s has dtype %u instead of %u", expected.name,
                  plane->dtype, expected.dtype);
  if (plane->ndim != expected.ndim)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "plane %s has %u dimensions instead of %u", expected.name,
                  plane->ndim, expected.ndim);
  int64_t stride = dtype_bytes(expected.dtype);
  for (uint32_t d = expected.ndim; d-- > 0;) {
    if (plane->shape[d] != expected.shape[d])
      return refuse(QCTS_UNSUPPORTED, why, why_size,
                    "plane %s has %lld elements in dimension %u instead of %lld", expected.name,
                    static_cast<long long>(plane->shape[d]), d, static_cast<long long>(expected.shape[d]));
    if (expected.shape[d] > 1 && plane->stride_bytes[d] != stride)
      return refuse(QCTS_UNSUPPORTED, why, why_size, "plane %s is not row-major", expected.name);
    stride *= expected.shape[d];
  }
  return QCTS_OK;
}

qcts_status check_planes(const qcts_problem& p, const char* scheme, const char* layout,
                         const qcts_plane* planes, uint32_t count, char* why, size_t why_size) {
  ExpectedPlane expected[kMaxPlanes];
  const uint32_t n_expected = expected_planes(p, scheme, layout, expected);
  for (uint32_t i = 0; i < n_expected; ++i)
    if (check_plane(expected[i], planes, count, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  return QCTS_OK;
}

qcts_status check_packing(const qcts_problem& p, const char* scheme, char* why, size_t why_size) {
  if (same_text(scheme, "mx") || same_text(scheme, "nvfp4")) {
    if (same_text(p.layout, "swizzled")) return QCTS_OK;
    return refuse(QCTS_UNSUPPORTED, why, why_size, "unknown layout %s",
                  p.layout == nullptr ? "NULL" : p.layout);
  }
  if (is_tile_packed(p.layout)) {
    if (p.w_dtype != QCTS_BF16)
      return refuse(QCTS_UNSUPPORTED, why, why_size, "tile_packed_4d holds bfloat16 weights only");
    if (1024 % p.group != 0)
      return refuse(QCTS_UNSUPPORTED, why, why_size,
                    "tile_packed_4d pads k to 1024, which group %lld does not divide",
                    static_cast<long long>(p.group));
    return QCTS_OK;
  }
  if (same_text(scheme, "int4_plain")) {
    if (!same_text(p.layout, "preshuffled_bf16"))
      return refuse(QCTS_UNSUPPORTED, why, why_size, "unknown layout %s",
                    p.layout == nullptr ? "NULL" : p.layout);
    if (p.n % 16 != 0 || p.k % 16 != 0)
      return refuse(QCTS_UNSUPPORTED, why, why_size, "layout %s needs n and k to be multiples of 16",
                    p.layout);
    return QCTS_OK;
  }
  if (!same_text(p.layout, "cpu_avx512") && !same_text(p.layout, "cpu_avx2") &&
      !same_text(p.layout, "cpu_default"))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "unknown layout %s",
                  p.layout == nullptr ? "NULL" : p.layout);
  if (p.n % 16 != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "layout %s needs n to be a multiple of 16, not %lld",
                  p.layout, static_cast<long long>(p.n));
  return QCTS_OK;
}

qcts_status check_linear(const qcts_kernel& kernel, const qcts_problem& p, char* why, size_t why_size) {
  if (!reads_layout(kernel.reads_layouts, p.layout))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "layout %s: this linear reads %s%s", p.layout,
                  kernel.reads_layouts == nullptr ? "plain planes only" : "plain planes and ",
                  kernel.reads_layouts == nullptr ? "" : kernel.reads_layouts);
  if (p.m < 0) return refuse(QCTS_UNSUPPORTED, why, why_size, "m = %lld", static_cast<long long>(p.m));
  if (!is_float(p.x_dtype) || !is_float(p.y_dtype))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "x and y must be float32, float16 or bfloat16");
  if (p.bias_dtype != QCTS_NONE && !is_float(p.bias_dtype))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "bias must be float32, float16 or bfloat16");
  if (p.activation != nullptr && p.activation[0] != '\0' && !same_text(p.activation, "weight_only"))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy %s: only weight_only is supported",
                  p.activation);
  const int64_t x_row = p.k * dtype_bytes(p.x_dtype), y_row = p.n * dtype_bytes(p.y_dtype);
  if (p.m > 1 && (p.ldx_bytes < x_row || p.ldy_bytes < y_row))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "rows of x or y overlap: ldx %lld, ldy %lld bytes",
                  static_cast<long long>(p.ldx_bytes), static_cast<long long>(p.ldy_bytes));
  return QCTS_OK;
}

qcts_status check_dense_rows(const qcts_problem& p, int64_t ld_bytes, const char* name, char* why,
                             size_t why_size) {
  if (p.n > 1 && ld_bytes < p.k * static_cast<int64_t>(dtype_bytes(p.w_dtype)))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "rows overlap: %s %lld bytes", name,
                  static_cast<long long>(ld_bytes));
  return QCTS_OK;
}

// Is the problem a linear on packed planes?
bool reads_packed(uint32_t op, const qcts_problem& p) { return op == QCTS_OP_LINEAR && !is_plain(p.layout); }

bool any_null(const qcts_plane* planes, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (planes[i].data == nullptr) return true;
  return false;
}

qcts_status check_host(const qcts_problem& p, char* why, size_t why_size) {
  if (p.struct_size < sizeof(qcts_problem))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "qcts_problem has %u bytes, this kernel needs %zu",
                  p.struct_size, sizeof(qcts_problem));
  if (!has_scheme_params(p))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "the host passed no parameters for scheme %s",
                  p.scheme_name == nullptr ? "NULL" : p.scheme_name);
  return QCTS_OK;
}

// Returns the layout of the input `planes`.
const char* input_layout(uint32_t op, const qcts_problem& p) {
  return op == QCTS_OP_UNPACK || reads_packed(op, p) ? p.layout : "plain";
}

}  // namespace

qcts_status check_problem(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                          size_t why_size) {
  const qcts_problem& p = *problem;
  if (check_host(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  const char* missing = missing_feature(kernel.variant);
  if (missing != nullptr) return refuse(QCTS_UNSUPPORTED, why, why_size, "%s", missing);
  if (const char* place = misplaced(kernel.variant, p); place != nullptr)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "%s", place);
  if (p.n <= 0 || p.k <= 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "n = %lld, k = %lld", static_cast<long long>(p.n),
                  static_cast<long long>(p.k));
  if (!is_float(p.w_dtype))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "weights must be float32, float16 or bfloat16");
  if (check_blocks(p, kernel.scheme, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  qcts_status status = QCTS_OK;
  if (kernel.op == QCTS_OP_LINEAR) status = check_linear(kernel, p, why, why_size);
  if (status != QCTS_OK) return status;
  const bool packs = kernel.op == QCTS_OP_PACK || kernel.op == QCTS_OP_UNPACK || reads_packed(kernel.op, p);
  if (packs && check_packing(p, kernel.scheme, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  if (kernel.op == QCTS_OP_QUANTIZE) status = check_dense_rows(p, p.ldx_bytes, "ldx", why, why_size);
  if (kernel.op == QCTS_OP_DEQUANTIZE) status = check_dense_rows(p, p.ldy_bytes, "ldy", why, why_size);
  if (status != QCTS_OK) return status;
  if (p.n_planes > 0)
    status = check_planes(p, kernel.scheme, input_layout(kernel.op, p), p.planes, p.n_planes, why, why_size);
  if (status == QCTS_OK && p.n_out_planes > 0)
    status = check_planes(p, kernel.scheme, kernel.op == QCTS_OP_PACK ? p.layout : "plain", p.out_planes,
                          p.n_out_planes, why, why_size);
  return status;
}

qcts_status check_given_scale(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                              size_t why_size) {
  if (problem->n_planes == 0) return QCTS_OK;
  ExpectedPlane expected[kMaxPlanes];
  const uint32_t n_expected = expected_given_scale(*problem, kernel.scheme, expected);
  for (uint32_t i = 0; i < n_expected; ++i)
    if (check_plane(expected[i], problem->planes, problem->n_planes, why, why_size) != QCTS_OK)
      return QCTS_UNSUPPORTED;
  return QCTS_OK;
}

bool gives_scale(const qcts_kernel& kernel, const qcts_problem& problem) {
  ExpectedPlane expected[kMaxPlanes];
  const uint32_t n_expected = expected_given_scale(problem, kernel.scheme, expected);
  for (uint32_t i = 0; i < n_expected; ++i)
    if (check_plane(expected[i], problem.planes, problem.n_planes, nullptr, 0) != QCTS_OK ||
        plane_data(problem.planes, problem.n_planes, expected[i].name) == nullptr)
      return false;
  return true;
}

qcts_status check_activation(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                             size_t why_size) {
  const qcts_problem& p = *problem;
  if (check_host(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  const char* missing = missing_feature(kernel.variant);
  if (missing != nullptr) return refuse(QCTS_UNSUPPORTED, why, why_size, "%s", missing);
  if (const char* place = misplaced(kernel.variant, p); place != nullptr)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "%s", place);
  if (!lists_policy(kernel.scheme, p.activation))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "activation policy %s",
                  p.activation == nullptr ? "NULL" : p.activation);
  if (!is_float(p.x_dtype))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "x must be float32, float16 or bfloat16");
  if (p.m < 0 || p.k <= 0 || (p.m > 1 && p.ldx_bytes < p.k * static_cast<int64_t>(dtype_bytes(p.x_dtype))))
    return refuse(QCTS_UNSUPPORTED, why, why_size, "x of %lld x %lld", static_cast<long long>(p.m),
                  static_cast<long long>(p.k));
  if (check_given_scale(kernel, problem, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  return check_blocks(p, kernel.scheme, why, why_size);
}

qcts_status check_run(const qcts_kernel& kernel, const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  if (check_problem(kernel, problem, nullptr, 0) != QCTS_OK) return QCTS_INVALID;
  const bool reads_planes =
      kernel.op != QCTS_OP_QUANTIZE && (kernel.prepare == nullptr || kernel.op != QCTS_OP_LINEAR);
  const bool writes_planes =
      kernel.op == QCTS_OP_QUANTIZE || kernel.op == QCTS_OP_PACK || kernel.op == QCTS_OP_UNPACK;
  const bool any_rows = !has_no_rows(kernel.op, p);
  const bool reads_x = any_rows && (kernel.op == QCTS_OP_QUANTIZE || kernel.op == QCTS_OP_LINEAR);
  const bool writes_y = any_rows && (kernel.op == QCTS_OP_DEQUANTIZE || kernel.op == QCTS_OP_LINEAR);
  if ((reads_planes && p.n_planes == 0) || (writes_planes && p.n_out_planes == 0)) return QCTS_INVALID;
  if ((reads_x && p.x == nullptr) || (writes_y && p.y == nullptr)) return QCTS_INVALID;
  if (reads_planes && any_null(p.planes, p.n_planes)) return QCTS_INVALID;
  if (writes_planes && any_null(p.out_planes, p.n_out_planes)) return QCTS_INVALID;
  if (p.bias != nullptr && !is_float(p.bias_dtype)) return QCTS_INVALID;
  if (kernel.workspace_bytes != nullptr) {
    const uint64_t needed = kernel.workspace_bytes(problem);
    if (needed > 0 && (p.workspace == nullptr || p.workspace_bytes < needed)) return QCTS_INVALID;
  }
  if (kernel.prepare != nullptr &&
      (p.prepared == nullptr || p.prepared_bytes < kernel.prepared_bytes(problem)))
    return QCTS_INVALID;
  return QCTS_OK;
}

qcts_status check_prepare(const qcts_kernel& kernel, const qcts_problem* problem) {
  if (check_problem(kernel, problem, nullptr, 0) != QCTS_OK || problem->n_planes == 0) return QCTS_INVALID;
  return any_null(problem->planes, problem->n_planes) ? QCTS_INVALID : QCTS_OK;
}

}  // namespace qcts
